""" what ran when."""
