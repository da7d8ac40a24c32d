"""Readers of the repository's own files: pairs, placement, latencies, prompts, retrieval."""
