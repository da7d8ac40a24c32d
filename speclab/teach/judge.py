"""Judges a rule for drafts by its exact distributions.

A function that is still the lesson's template is reported as not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import unwrap
from typing import Any

from speclab.check.calls import Failed, time_limit
from speclab.check.case import Array, Rule
from speclab.check.mistakes import Mistake, is_same, likely_mistake
from speclib.worlds.enumerator import NotRepeatable

from .card import Card, Heading, not_begun, right_card, wrong_card
from .lesson_files import load_hints

Distribution = Mapping[Any, float]


@dataclass(frozen=True, eq=False)
class RuleExercise:
    """An exercise that asks for a rule for drafts; every outcome is enumerated.

    name         key of the hints in ``data/lessons``
    cases        the cases to try, starting with the smallest
    rows_as      converts distributions to the type of a rule's arguments
    slowness_in  describes how a rule could keep more drafts in a case, or None
    mistakes     wrong rules, by name
    praise       text of the card for a correct rule
    """

    name: str
    cases: Sequence[Any]
    rows_as: Array
    slowness_in: Callable[[Any, Any], str | None]
    mistakes: Sequence[Mistake]
    praise: str

    def check(self, rule: Rule) -> Card:
        """The card for a student's rule."""
        if is_untouched(rule):
            return with_hints(not_begun(), self.name)
        return with_hints(self._judge(rule), self.name)

    def _judge(self, rule: Rule) -> Card:
        try:
            with time_limit():
                distributions = self.distributions_of(rule)
                card = self._first_finding(distributions)
                if card is None:
                    return right_card(self.praise)
                again = self.distributions_of(rule)
        except NotRepeatable:
            return own_randomness()
        except Failed as failed:
            return wrong_card(str(failed))

        if not is_same(again, distributions):
            return own_randomness()
        mistake = self._likely_mistake(card, distributions)
        if mistake is None:
            return card
        return replace(card, cause=mistake.name, details=(mistake.question,))

    def _likely_mistake(
        self, card: Card, distributions: Sequence[Distribution]
    ) -> Mistake | None:
        """Our wrong rule that behaves like the student's; None if unknown.

        Outcomes of probability 0 count only if nothing else is wrong.
        """
        if card.heading is Heading.ALMOST:
            return likely_mistake(distributions, self.mistakes, self._of_mistake)
        return likely_mistake(
            _likely_in(distributions),
            self.mistakes,
            lambda rule: _likely_in(self._of_mistake(rule)),
        )

    def distributions_of(self, rule: Rule) -> list[Distribution]:
        """A rule's distribution in each case. Raises Failed if the rule does."""
        return [case.distribution(rule, self.rows_as) for case in self.cases]

    def _of_mistake(self, rule: Rule) -> list[Distribution]:
        return _distributions_of_mistake(self, rule)

    def _first_finding(self, distributions: Sequence[Distribution]) -> Card | None:
        """The card of the first error, without a cause; None if the rule is right."""
        for find, heading in (
            (lambda case, found: case.difference(found), Heading.WRONG),
            (self.slowness_in, Heading.SLOW),
            (lambda case, found: case.impossible(found), Heading.ALMOST),
        ):
            for case, distribution in zip(self.cases, distributions, strict=True):
                finding = find(case, distribution)
                if finding is not None:
                    return Card(heading, finding)
        return None


@cache
def _distributions_of_mistake(exercise: RuleExercise, rule: Rule) -> list[Distribution]:
    """The distributions of one of our wrong rules, computed once; [] if it fails."""
    try:
        return exercise.distributions_of(rule)
    except Failed:
        return []


def _likely_in(distributions: Sequence[Distribution]) -> list[Distribution]:
    """The distributions without outcomes of probability 0."""
    likely: list[Distribution] = []
    for distribution in distributions:
        likely.append({key: each for key, each in distribution.items() if each > 0})
    return likely


def own_randomness() -> Card:
    """The card of a function that uses random numbers other than its coins."""
    return wrong_card(
        "When we ran your function a second time, it did something else.",
        "We try every outcome of the coins, so all randomness must come from `coin()` "
        "or from the world's coins, not from random or numpy.",
        cause="own randomness",
    )


def with_hints(card: Card, exercise: str) -> Card:
    """The same card, with the exercise's hints unless it is solved."""
    if card.is_right:
        return card
    return replace(card, hints=tuple(load_hints()[exercise]))


def is_untouched(function: Callable[..., Any]) -> bool:
    """Whether a function's body is still the lesson's ``...``."""
    code = getattr(unwrap(function), "__code__", None)
    if code is None:
        return False
    return bool(
        code.co_code == _empty.__code__.co_code
        and code.co_consts == _empty.__code__.co_consts
    )


def _empty() -> Any: ...
