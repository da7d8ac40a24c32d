"""All categories together: seeded tasks for training, and the held-out ones that are shipped.

Training draws tasks for ever from one seed and leaves out every task whose question is among the
shipped prompts. Knows nothing of tokens.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from . import arithmetic, code, frames, reasoning
from .tasks import Task

GENERATORS = {
    "humaneval": code.task,
    "coding": code.dialogue,
    "gsm8k": partial(arithmetic.task, language="en"),
    **{
        f"mgsm_{lang}": partial(arithmetic.task, language=lang)
        for lang in arithmetic.LANGUAGES
        if lang != "en"
    },
    **{
        category: partial(reasoning.task, category=category)
        for category in reasoning.KINDS_OF
    },
    **{
        category: partial(frames.task, category=category)
        for category in frames.categories()
    },
}
# English is among the MGSM languages but trained as gsm8k.
SHIPPED_ONLY = {"mgsm_en": partial(arithmetic.task, language="en")}
# Tasks drawn of each category relative to one MGSM language; the ten languages share their
# arithmetic, code and translation have the largest space of questions.
WEIGHT = {
    "humaneval": 4,
    "gsm8k": 3,
    "translation": 3,
    "coding": 2,
    "summarization": 2,
    "rag": 2,
    "reasoning": 2,
    "math": 2,
    "extraction": 2,
}
# The second pass: what has to be copied from far back in the prompt is learnt last.
COPYING = {
    "translation": 10,
    "rag": 6,
    "summarization": 6,
    "extraction": 4,
    "reasoning": 4,
    "stem": 2,
    "writing": 4,
    "roleplay": 2,
    "humaneval": 4,
    "gsm8k": 3,
    "math": 2,
}
CATEGORIES = (*GENERATORS, *SHIPPED_ONLY)
SHIPPED_SEED, SHIPPED = 20_000, 12


def shipped(category: str, count: int = SHIPPED) -> list[Task]:
    """The `count` different tasks of `category` that `data/prompts` holds."""
    rng = random.Random(f"{SHIPPED_SEED} {category}")
    found: dict[str, Task] = {}
    while len(found) < count:
        task = (GENERATORS | SHIPPED_ONLY)[category](rng)
        if task.key not in found:
            found[task.key] = task
    return list(found.values())


def held_out() -> set[str]:
    """Keys of all shipped tasks."""
    return {task.key for name in CATEGORIES for task in shipped(name)}


def tasks(seed: int, weight: dict[str, int] = WEIGHT) -> Iterator[Task]:
    """An endless seeded stream of training tasks, never one of the shipped ones."""
    rng, held = random.Random(seed), held_out()
    names = list(GENERATORS)
    weights = [weight.get(name, 1) for name in names]
    while True:
        task = GENERATORS[rng.choices(names, weights)[0]](rng)
        if task.key not in held:
            yield task
