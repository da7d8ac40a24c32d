"""Pictures without controls."""
