"""Formulas of the papers: a leaf, which knows no method, world or trace."""
