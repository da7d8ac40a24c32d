"""Generates tasks: the embedded models' training text, and our prompts.

Every task combines words from ``data/corpus`` with random numbers, from a seed.
"""
