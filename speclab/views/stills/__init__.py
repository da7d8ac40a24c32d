"""Still pictures of numbers: curves, and bars of forward passes."""
