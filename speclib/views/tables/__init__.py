"""A paper's table in four kinds, as html and markdown."""
