"""How the embedded models are made: a tokenizer, a fit, a distillation.

`python -m speclab.training` repeats all of it on one machine, seeded. Nothing here is
needed to use the models, and nothing is downloaded. The training text comes from
`speclab.training.tasks`. This package does not know how a method decodes, or how
the checkpoints are loaded later.
"""
