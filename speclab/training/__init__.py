"""Trains the embedded models.

`python -m speclab.training` repeats the whole training on one machine, from fixed
seeds. Nothing is downloaded, and the trained models work without this package. It does
not know how a method decodes, or how the checkpoints are loaded later.

`configuration` lists what we train and for how long, and `__main__` trains it.
`tasks` generates the training text, `tokenizer` encodes it, and `fit` and `distil`
train on it. `measure_drafts` measures the results, and `cards` records them. `distil`
works with any target and tokenizer.
"""
