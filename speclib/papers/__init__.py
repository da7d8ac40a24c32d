"""Papers as data, and their tables filled: a number per cell and kind, claims judged."""
