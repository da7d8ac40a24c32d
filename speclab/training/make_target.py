"""Makes the tokenizer and the target, from nothing."""

from __future__ import annotations

import random
from itertools import chain

from transformers import PreTrainedModel

from speclab.training.tasks import code, corpus

from . import cards, fit, recipes
from . import tokenizer as bpe
from .folders import MODELS
from .options import Options
from .token_batches import batches, documents

TOKENIZER_TASKS = 16_000
TOKENIZER_LIBRARY = 150_000  # characters of the standard library's source


def make_target(options: Options, command: str) -> None:
    """Trains the tokenizer and the target, and writes both with the target's card.

    The target has two passes over the training text; in the second there is more of
    what has to be copied from the prompt.

    command: what the user typed, for the card.
    """
    folder = MODELS / "target"
    tokenizer = bpe.train(_tokenizer_texts(options.seed))
    bpe.save(tokenizer, folder)
    writer = bpe.Writer(tokenizer)
    model = fit.build(recipes.TARGET, options.seed)

    def save(step: int, model: PreTrainedModel) -> None:
        fit.save(model, folder)

    plan = options.plan(options.target_steps, options.target_minutes)
    stream = documents(writer, options.seed + 1)
    first = fit.fit(model, batches(stream, plan.batch, plan.length), plan, keep=save)

    plan = options.plan(options.copying_steps, options.copying_minutes, rate=1e-3)
    stream = documents(writer, options.seed + 5, corpus.COPYING)
    second = fit.fit(model, batches(stream, plan.batch, plan.length), plan, keep=save)

    fit.save(model, folder)
    card = cards.Card(
        name="target",
        architecture=recipes.TARGET,
        command=command,
        runs={"First pass": first, "Second pass, more copying": second},
    )
    cards.write(card)


def _tokenizer_texts(seed: int) -> chain[str]:
    """What the tokenizer learns from: training tasks, and real code."""
    tasks = bpe.texts(corpus.tasks(seed + 11), TOKENIZER_TASKS)
    library = code.library(random.Random(seed), TOKENIZER_LIBRARY)
    return chain(tasks, library)
