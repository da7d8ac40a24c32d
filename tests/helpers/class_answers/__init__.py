"""A class's possible answers, by lesson and exercise: wrong, or right in many styles.

The keys of ``RIGHT`` and ``WRONG`` are names of checks, such as "residual" for
``teach.check_residual``. Wrong answers make mistakes that the exercise does not name.
``NAMED``, in some lessons, contains answers with a named mistake, by that name.
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
    """Returns the right answers to every exercise."""
    return {name: each for lesson in LESSONS for name, each in lesson.RIGHT.items()}


def wrong_answers() -> Answers:
    """Returns the wrong answers to every exercise."""
    return {name: each for lesson in LESSONS for name, each in lesson.WRONG.items()}


def named_answers() -> dict[str, dict[str, list[Callable[..., Any]]]]:
    """Returns wrong answers with a named mistake, by exercise and by that name."""
    named: dict[str, dict[str, list[Callable[..., Any]]]] = {}
    for lesson in LESSONS:
        named.update(getattr(lesson, "NAMED", {}))
    return named
