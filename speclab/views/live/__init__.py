"""Interactive pictures, which a reader can drag, control with keys, and hear."""
