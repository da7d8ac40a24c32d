"""Known mistakes: wrong solutions to compare a user's function with.

Each mistake has a function that makes it. If a user's function returns the same answers
in every case, we report that it behaves like this mistake. We do not read its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# The absolute and relative tolerance within which two answers count as the same. It
# allows for answers in single precision.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Mistake:
    """A wrong solution.

    name       such as "residual not normalised"
    question   a hint to its author
    solution   the function that makes the mistake
    """

    name: str
    question: str
    solution: Callable[..., Any]


def likely_mistake(
    answers: object, mistakes: Iterable[Mistake], answers_of: Callable[..., object]
) -> Mistake | None:
    """The first mistake whose solution has the same ``answers``; None if none does.

    ``answers_of(solution)`` returns a solution's answers.
    """
    for mistake in mistakes:
        if is_same(answers_of(mistake.solution), answers):
            return mistake
    return None


def is_same(one: object, other: object) -> bool:
    """Whether two answers agree: numbers, distributions, or collections of them."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            is_same(one[key], other[key]) for key in one
        )
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(is_same, one, other))
    if one is None or other is None:
        return one is other
    return _are_close(one, other)


def _are_close(one: Any, other: Any) -> bool:
    """Whether two numbers, or arrays of the same shape, agree. NaN agrees with NaN."""
    try:
        if _is_text(one) or _is_text(other):  # numpy would read "0.5" as a number
            return False
        first, second = np.asarray(one, float), np.asarray(other, float)
    except Exception:  # a user's class may raise anything
        return one is other
    if first.size == second.size == 1:
        first, second = first.reshape(()), second.reshape(())  # an array of one number
    if first.shape != second.shape:
        return False
    return bool(
        np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    )


def _is_text(value: Any) -> bool:
    """Whether a value is a string, or an array of strings."""
    return np.asarray(value).dtype.kind in "SU"
