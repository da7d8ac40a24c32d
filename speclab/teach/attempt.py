"""An attempt at an exercise: judged and recorded, unless nothing has been written yet.

Whoever opens a lesson may run all of its cells. A function that is still as the lesson
has it is no attempt: it gets a card that says so, and nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from .card import Card, not_begun
from .record import keep_try


def judge_attempt(
    exercise: str, function: Callable[..., Any], judge: Callable[[], Card]
) -> Card:
    """The card that ``judge`` gives for ``function``; the student's try is recorded."""
    if is_untouched(function):
        return not_begun()
    card = judge()
    keep_try(exercise, card.is_right)
    return card


def is_untouched(function: Callable[..., Any]) -> bool:
    """Whether a function's body is the ``...`` that a lesson puts there."""
    code = getattr(unwrap(function), "__code__", None)
    if code is None:
        return False
    return bool(
        code.co_code == _empty.__code__.co_code
        and code.co_consts == _empty.__code__.co_consts
    )


def _empty() -> Any: ...
