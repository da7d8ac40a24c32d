"""An exercise whose answer is a number or a distribution.

The student's function is called in every case, the smallest first. The first case in
which it differs from the right answer is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from speclab.check.calls import Failed, as_written, call_guarded, time_limit
from speclab.check.mistakes import TOLERANCE, Mistake, is_same, likely_mistake

from .card import Card, not_begun, right_card, wrong_card
from .judge import is_untouched
from .lesson_files import named_mistakes

Answer: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Formula:
    """An exercise that asks for a function of numbers and distributions.

    Called with a student's function, it gives the card.

    name      under which ``data/lessons`` has hints, and what cards of mistakes ask
    right     the right function; the card calls arguments as it does
    gives     what the function gives, in words
    cases     arguments, those that are easiest to follow first
    wrong     functions that make a mistake, by its name
    praise    what the card of a right function says
    is_count  whether a whole number next to the right one is as good, since things are
              counted
    """

    name: str
    right: Answer
    gives: str
    cases: Sequence[tuple[Any, ...]]
    wrong: Mapping[str, Answer]
    praise: str
    is_count: bool = False

    def __call__(self, function: Answer) -> Card:
        """The card for a student's function."""
        if is_untouched(function):
            return not_begun()
        try:
            with time_limit():
                answers = self._answers_of(function)
        except Failed as failed:
            return wrong_card(str(failed))

        for case, answer in zip(self.cases, answers, strict=True):
            expected = self.right(*case)
            if not self._is_right(answer, expected):
                return self._card_of(case, answer, expected, answers)
        return right_card(self.praise)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The wrong functions, with what their cards ask."""
        return named_mistakes(self.name, self.wrong.items())

    def _is_right(self, answer: Any, expected: Any) -> bool:
        if is_same(answer, expected):
            return True
        return self.is_count and _is_next_to(answer, expected)

    def _answers_of(self, function: Answer) -> list[Any]:
        answers = []
        for case in self.cases:
            try:
                answers.append(call_guarded(function, *deepcopy(case)))
            except Failed as failed:
                raise Failed(f"For {self._describe(case)}: {failed}") from failed
        return answers

    def _answers_of_mistake(self, function: Answer) -> list[Any]:
        """The answers of a mistake; an error equals no other answer."""
        try:
            with np.errstate(all="ignore"):
                return self._answers_of(function)
        except Failed:
            return [object()]

    def _card_of(
        self, case: tuple[Any, ...], answer: Any, expected: Any, answers: list[Any]
    ) -> Card:
        """The card of a wrong function, whose smallest counterexample is ``case``."""
        if answer is None:
            verdict = f"For {self._describe(case)} your function gives nothing."
            return wrong_card(verdict, "Does it end with a return?", cause="no return")

        given, wanted = _shown(answer), _shown(expected)
        if given == wanted:  # the difference is in later digits
            given, wanted = _shown(answer, digits=10), _shown(expected, digits=10)
        verdict = (
            f"For {self._describe(case)} your function gives {given}; "
            f"{self.gives} is {wanted}."
        )
        mistake = likely_mistake(answers, self.mistakes, self._answers_of_mistake)
        if mistake is None:
            return wrong_card(verdict)
        return wrong_card(verdict, mistake.question, cause=mistake.name)

    def _describe(self, case: tuple[Any, ...]) -> str:
        parts = []
        for name, value in zip(signature(self.right).parameters, case, strict=True):
            parts.append(f"{name} = {_shown(value)}")
        return ", ".join(parts)


def _is_next_to(answer: Any, expected: float) -> bool:
    """Whether ``answer`` is a whole number at most one away."""
    if not isinstance(answer, int | float | np.integer | np.floating):
        return False
    is_whole = float(answer).is_integer()
    return is_whole and abs(answer - expected) <= 1 + TOLERANCE


def _shown(value: Any, digits: int = 4) -> str:
    """A number with this many digits, a distribution as "(0.2, 0.8)"."""
    if isinstance(value, np.ndarray | list | tuple):
        return f"({', '.join(_shown(entry, digits) for entry in value)})"
    if isinstance(value, float | np.floating):
        return f"{value:.{digits}g}"
    return as_written(value)
