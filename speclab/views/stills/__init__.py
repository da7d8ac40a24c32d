"""Still pictures of numbers: curves."""
