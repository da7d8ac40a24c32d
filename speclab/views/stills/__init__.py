"""Still pictures of numbers: curves, dots and heat maps."""
