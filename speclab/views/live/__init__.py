"""Pictures that a reader can drag and control with keys, and that speak."""
