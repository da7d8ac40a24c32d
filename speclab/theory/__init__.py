"""Formulas that only the workbench asks: a leaf, which knows no method or world."""
