"""Generated tasks: what the embedded models learnt from, and the prompts of ours.

Every task is put together from the words in ``data/corpus`` and from numbers, seeded.
"""
