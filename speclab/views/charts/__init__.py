"""A paper's figures, in plotly."""
