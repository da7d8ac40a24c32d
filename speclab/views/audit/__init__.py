"""The audit as pages: per publication a list of items that unfold, and a summary."""
