"""How we make the embedded models: a tokenizer, a fit, a distillation.

`python -m speclab.training` repeats all of it on one machine, seeded. The models work
without this package, and nothing is downloaded. The training text comes from
`speclab.training.tasks`. This package does not know how a method decodes, or how the
checkpoints are loaded later.

`configuration` says what we train and for how long, and `__main__` trains it.
`tokenizer` and `tasks` make the text, `fit` and `distil` learn from it.
`measure_drafts` measures the results, and `cards` records them. `distil` works for any
target and tokenizer.
"""
