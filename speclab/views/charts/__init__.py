"""A paper's figures, drawn with plotly."""
