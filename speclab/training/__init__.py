"""How the embedded models are made: a tokenizer, a fit, a distillation.

`python -m speclab.training` repeats all of it on one machine, seeded. Nothing here is
needed to use the models, and nothing is downloaded. The training text comes from
`speclab.training.tasks`. This package does not know how a method decodes, or how
the checkpoints are loaded later.

`configuration` says what is trained and for how long, and `__main__` trains it.
`tokenizer` and `tasks` give the text, `fit` and `distil` learn from it; what came of it
is measured in `measure_drafts` and told in `cards`. `distil` knows no particular target
or tokenizer.
"""
