"""Static pictures of numbers: curves, and bars for forward passes."""
