"""what ran when."""
