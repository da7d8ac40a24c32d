"""Figures of a paper, in plotly."""
