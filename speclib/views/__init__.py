"""Views read traces and rows; they decide nothing and measure nothing."""
