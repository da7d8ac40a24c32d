"""What one cell computes: all that enters a cache key, besides the method's own code."""
