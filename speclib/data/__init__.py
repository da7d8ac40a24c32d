"""Readers of the project's own files: pairs, places, latencies, prompts, retrieval."""
