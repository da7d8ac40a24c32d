"""What a class may hand in, by lesson and exercise: right in many styles, and wrong.

``RIGHT`` and ``WRONG`` of each lesson have the name of a check, as "residual" for
``teach.check_residual``. The wrong answers make mistakes that the exercise has no name
for. ``NAMED``, where there is one, has answers that make one with a name, by that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import (
    lesson_10,
    lesson_10_optional,
    lesson_20,
    lesson_30,
    lesson_35,
    lesson_40,
    lesson_50,
    lesson_60,
    lesson_80,
)

Answers = dict[str, list[Callable[..., Any]]]

LESSONS = (
    lesson_10,
    lesson_10_optional,
    lesson_20,
    lesson_30,
    lesson_35,
    lesson_40,
    lesson_50,
    lesson_60,
    lesson_80,
)


def right_answers() -> Answers:
    """Of every exercise."""
    return {name: each for lesson in LESSONS for name, each in lesson.RIGHT.items()}


def wrong_answers() -> Answers:
    """Of every exercise."""
    return {name: each for lesson in LESSONS for name, each in lesson.WRONG.items()}


def named_answers() -> dict[str, dict[str, list[Callable[..., Any]]]]:
    """Wrong ones that make a mistake with a name, by exercise and by that name."""
    named: dict[str, dict[str, list[Callable[..., Any]]]] = {}
    for lesson in LESSONS:
        named.update(getattr(lesson, "NAMED", {}))
    return named
