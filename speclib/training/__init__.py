"""How the embedded models are made: generated task text, a tokenizer, a fit, a distillation.

`python -m speclib.training` repeats all of it on one machine, seeded. Nothing here is
needed to use the models, and nothing is downloaded. What this package does not know: how a
method decodes, and how the checkpoints are loaded later.
"""
