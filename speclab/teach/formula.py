"""An exercise whose answer is a number or a distribution.

We call the student's function on every case, starting with the smallest. The first
case with a wrong answer is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from speclab.check.calls import (
    Failed,
    as_written,
    call_guarded,
    is_caused_by,
    time_limit,
)
from speclab.check.mistakes import TOLERANCE, Mistake, is_same, likely_mistake

from .card import Card, not_begun, right_card, wrong_card
from .judge import is_untouched, with_hints
from .lesson_files import load_questions, named_mistakes

Answer: TypeAlias = Callable[..., Any]

BY_ZERO = "division by zero"  # the mistake of a formula that is 0 / 0 somewhere
BY_CHANCE = (
    "When we ran your function a second time, it returned other numbers: does it draw "
    "samples? They only estimate the answer; use a formula."
)
ROUNDED = "These are the right numbers, rounded. Can you return them unrounded?"
NEAR = 0.05  # relative to the right answer
NEARLY_RIGHT = (
    "All your numbers are close to the right ones. Is something rounded, cut off or "
    "estimated on the way?"
)


@dataclass(frozen=True)
class Formula:
    """An exercise that asks for a function of numbers and distributions.

    Calling it with a student's function returns the card.

    name      key of the hints and the mistakes' questions in ``data/lessons``
    right     the correct function; the card uses its argument names
    quantity  what the function returns, in words
    cases     arguments, starting with the easiest to follow
    wrong     name of a mistake -> a function that makes it
    praise    text of the card for a correct function
    is_count  whether the answer is a count, so that a neighbouring whole number counts
              as right
    """

    name: str
    right: Answer
    quantity: str
    cases: Sequence[tuple[Any, ...]]
    wrong: Mapping[str, Answer]
    praise: str
    is_count: bool = False

    def __call__(self, function: Answer) -> Card:
        """The card for a student's function."""
        if is_untouched(function):
            return with_hints(not_begun(), self.name)
        return with_hints(self._judge(function), self.name)

    def _judge(self, function: Answer) -> Card:
        try:
            with time_limit():
                answers = self._answers_of(function)
        except Failed as failed:
            return self._card_of_failed(failed)

        for case, answer in zip(self.cases, answers, strict=True):
            expected = self.right(*case)
            if not self._is_right(answer, expected):
                verdict = self._verdict(case, answer, expected)
                cause, question = self._cause(answer, answers, function)
                details = (question,) if question else ()
                return wrong_card(verdict, *details, cause=cause)
        return right_card(self.praise)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The wrong functions, with the questions on their cards."""
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
        """The answers of a wrong function; an error equals no other answer."""
        try:
            with np.errstate(all="ignore"):
                return self._answers_of(function)
        except Failed:
            return [object()]

    def _card_of_failed(self, failed: Failed) -> Card:
        """The card of a function that raised an error."""
        question = load_questions().get(self.name, {}).get(BY_ZERO)
        if question and is_caused_by(failed, ZeroDivisionError):
            return wrong_card(str(failed), question, cause=BY_ZERO)
        return wrong_card(str(failed))

    def _verdict(self, case: tuple[Any, ...], answer: Any, expected: Any) -> str:
        """Compares a wrong answer in a case with the right one, in a sentence."""
        if answer is None:
            return f"For {self._describe(case)} your function returns nothing."
        given, wanted = _shown(answer), _shown(expected)
        if given == wanted:  # the difference is in later digits
            given, wanted = _shown(answer, digits=10), _shown(expected, digits=10)
        return (
            f"For {self._describe(case)} your function returns {given}, but "
            f"{self.quantity} is {wanted}."
        )

    def _cause(
        self, answer: Any, answers: list[Any], function: Answer
    ) -> tuple[str, str]:
        """The likely cause of wrong answers and its card's question; empty if unknown.

        ``answer``: the first wrong answer in ``answers``.
        """
        if answer is None:
            return "no return", "Does it end with a return?"
        mistake = likely_mistake(answers, self.mistakes, self._answers_of_mistake)
        if mistake is not None:
            return mistake.name, mistake.question
        if not is_same(self._answers_of_mistake(function), answers):
            return "estimated by chance", BY_CHANCE
        expected = [self.right(*case) for case in self.cases]
        if _are_rounded(answers, expected):
            return "rounded", ROUNDED
        if _are_near(answers, expected):
            return "rounded or estimated", NEARLY_RIGHT
        return "", ""

    def _describe(self, case: tuple[Any, ...]) -> str:
        parts = []
        for name, value in zip(signature(self.right).parameters, case, strict=True):
            parts.append(f"{name} = {_shown(value)}")
        return ", ".join(parts)


def _are_rounded(answers: list[Any], expected: list[Any]) -> bool:
    """Whether these are the right answers, rounded."""
    for digits in range(5):
        try:
            rounded = [np.round(value, digits) for value in expected]
        except TypeError:  # a string
            return False
        if is_same(answers, rounded):
            return True
    return False


def _are_near(answers: list[Any], expected: list[Any]) -> bool:
    """Whether each answer is almost the right one."""
    for answer, wanted in zip(answers, expected, strict=True):
        try:
            if not np.allclose(answer, wanted, rtol=NEAR, atol=0):
                return False
        except (TypeError, ValueError):  # a string, or a different length
            return False
    return True


def _is_next_to(answer: Any, expected: float) -> bool:
    """Whether ``answer`` is a whole number at most 1 away from ``expected``."""
    if not isinstance(answer, int | float | np.integer | np.floating):
        return False
    is_whole = float(answer).is_integer()
    return is_whole and abs(answer - expected) <= 1 + TOLERANCE


def _shown(value: Any, digits: int = 4) -> str:
    """A number with up to ``digits`` digits; a distribution as "(0.2, 0.8)"."""
    if isinstance(value, np.ndarray | list | tuple):
        return f"({', '.join(_shown(entry, digits) for entry in value)})"
    if isinstance(value, float | np.floating):
        return f"{value:.{digits}g}"
    return as_written(value)
