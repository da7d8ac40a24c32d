"""A run, drawn: its timeline, and the letters, numbers and shapes of any picture."""
