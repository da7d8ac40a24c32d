"""Tasks of all categories: seeded tasks for training, and held-out tasks.

Training draws an endless stream of tasks from one seed, and skips every task with a
held-out question. This module knows nothing about tokens.

The shipped prompts and the datastore's tasks are held out. The first twelve prompts of
a category were held out from the start. We added the others after the embedded models
had been trained, and chose questions that training had never drawn. So ``tasks`` still
draws the text that the models were trained on. ``data/corpus/held_out.toml`` lists the
draws that we skip because they had already occurred in training.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count as numbers
from typing import TypeAlias

from speclab.training.tasks import arithmetic, code, frames, reasoning
from speclab.training.tasks.tasks import Task, data

Generator: TypeAlias = Callable[[random.Random], Task]


def _generators(held_out: bool = False) -> dict[str, Generator]:
    """The function that draws a task, for each category in training.

    ``held_out``: in categories where training has drawn nearly all questions, use
    names, facts and numbers that training never draws.
    """
    kinds_of = reasoning.HELD_OUT_KINDS_OF if held_out else reasoning.KINDS_OF
    generators: dict[str, Generator] = {
        "humaneval": code.task,
        "coding": code.dialogue,
        "gsm8k": partial(arithmetic.task, language="en"),
    }
    for language in arithmetic.LANGUAGES:
        if language != "en":  # MGSM includes English, but we train it as gsm8k
            story = partial(arithmetic.task, language=language)
            generators[f"mgsm_{language}"] = story
    for category in reasoning.KINDS_OF:
        generators[category] = partial(
            reasoning.task, category=category, kinds_of=kinds_of
        )
    for category in frames.categories():
        generators[category] = partial(
            frames.task, category=category, held_out=held_out
        )
    return generators


GENERATORS = _generators()
HELD_OUT_GENERATORS = _generators(held_out=True)
SHIPPED_ONLY: dict[str, Generator] = {
    "mgsm_en": partial(arithmetic.task, language="en")
}
CATEGORIES = (*GENERATORS, *SHIPPED_ONLY)
SHIPPED_SEED, SHIPPED = 20_000, 96
FIRST = 12  # shipped prompts that were held out from the start
DATASTORE_SEED, DATASTORE_DRAWS = 30_000, 2_150

# How often each category is drawn, relative to one MGSM language. The ten languages
# share their arithmetic; code and translation have the most possible questions.
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

# For the second pass: models learn last to copy from far back in the prompt.
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
    """The first ``count`` tasks of ``category`` in ``data/prompts``."""
    return list(_shipped(category)[:count])


@cache
def _shipped(category: str) -> tuple[Task, ...]:
    """All shipped tasks of ``category``, without repeated questions."""
    rng = random.Random(f"{SHIPPED_SEED} {category}")
    task_of_key: dict[str, Task] = {}
    generate = {**GENERATORS, **SHIPPED_ONLY}[category]
    while len(task_of_key) < FIRST:
        task = generate(rng)
        task_of_key.setdefault(task.key, task)

    generate = {**HELD_OUT_GENERATORS, **SHIPPED_ONLY}[category]
    drawn_in_training = _drawn_in_training(category)
    for number in numbers():
        if len(task_of_key) == SHIPPED:
            break
        task = generate(rng)
        if number not in drawn_in_training:
            task_of_key.setdefault(task.key, task)
    return tuple(task_of_key.values())


@cache
def datastore_tasks() -> tuple[Task, ...]:
    """About 2,000 tasks from all categories, neither used in training nor shipped.

    They have the same kinds and sentences as the training tasks, but other facts.
    """
    rng = random.Random(DATASTORE_SEED)
    names, weights = _weighted_categories(WEIGHT)
    drawn_in_training = _drawn_in_training("datastore")
    shipped_keys = _shipped_keys()
    chosen = []
    for number in range(DATASTORE_DRAWS):
        name = rng.choices(names, weights)[0]
        task = HELD_OUT_GENERATORS[name](rng)
        if number not in drawn_in_training and task.key not in shipped_keys:
            chosen.append(task)
    return tuple(chosen)


def _drawn_in_training(what: str) -> frozenset[int]:
    """The indices of the draws that an embedded model was also trained on."""
    return frozenset(data("held_out")["drawn_in_training"].get(what, ()))


def held_out() -> set[str]:
    """The keys of all tasks that training must not draw."""
    return _shipped_keys() | {task.key for task in datastore_tasks()}


def _shipped_keys() -> set[str]:
    keys: set[str] = set()
    for category in (*GENERATORS, *SHIPPED_ONLY):
        keys.update(task.key for task in shipped(category))
    return keys


def _weighted_categories(weight: dict[str, int]) -> tuple[list[str], list[int]]:
    """The training categories, and how often each is drawn."""
    names = list(GENERATORS)
    return names, [weight.get(name, 1) for name in names]


def tasks(seed: int, weight: dict[str, int] = WEIGHT) -> Iterator[Task]:
    """An endless seeded stream of training tasks, without held-out ones."""
    rng, held = random.Random(seed), held_out()
    names, weights = _weighted_categories(weight)
    while True:
        name = rng.choices(names, weights)[0]
        task = GENERATORS[name](rng)
        if task.key not in held:
            yield task
