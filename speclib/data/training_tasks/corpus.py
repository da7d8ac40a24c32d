"""All categories together: seeded tasks for training, and the shipped ones.

Training draws tasks for ever from one seed, and leaves out every task whose question is
among the shipped prompts. Knows nothing of tokens.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from . import arithmetic, code, frames, reasoning
from .tasks import Task

Generator: TypeAlias = Callable[[random.Random], Task]


def _generators() -> dict[str, Generator]:
    """What draws a task of each category that is trained."""
    generators: dict[str, Generator] = {
        "humaneval": code.task,
        "coding": code.dialogue,
        "gsm8k": partial(arithmetic.task, language="en"),
    }
    for language in arithmetic.LANGUAGES:
        if language != "en":  # which is among the MGSM languages, but trained as gsm8k
            story = partial(arithmetic.task, language=language)
            generators[f"mgsm_{language}"] = story
    for category in reasoning.KINDS_OF:
        generators[category] = partial(reasoning.task, category=category)
    for category in frames.categories():
        generators[category] = partial(frames.task, category=category)
    return generators


GENERATORS = _generators()
SHIPPED_ONLY: dict[str, Generator] = {
    "mgsm_en": partial(arithmetic.task, language="en")
}
CATEGORIES = (*GENERATORS, *SHIPPED_ONLY)
SHIPPED_SEED, SHIPPED = 20_000, 12

# Tasks drawn of each category, relative to one MGSM language. The ten languages share
# their arithmetic; code and translation have the largest space of questions.
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


def shipped(category: str, count: int = SHIPPED) -> list[Task]:
    """The ``count`` different tasks of ``category`` that ``data/prompts`` holds."""
    rng = random.Random(f"{SHIPPED_SEED} {category}")
    generate = {**GENERATORS, **SHIPPED_ONLY}[category]
    task_of_key: dict[str, Task] = {}
    while len(task_of_key) < count:
        task = generate(rng)
        task_of_key.setdefault(task.key, task)
    return list(task_of_key.values())


def held_out() -> set[str]:
    """The keys of all shipped tasks."""
    keys: set[str] = set()
    for category in CATEGORIES:
        keys.update(task.key for task in shipped(category))
    return keys


def tasks(seed: int, weight: dict[str, int] = WEIGHT) -> Iterator[Task]:
    """An endless seeded stream of training tasks, never one of the shipped ones."""
    rng, held = random.Random(seed), held_out()
    names = list(GENERATORS)
    weights = [weight.get(name, 1) for name in names]
    while True:
        name = rng.choices(names, weights)[0]
        task = GENERATORS[name](rng)
        if task.key not in held:
            yield task
