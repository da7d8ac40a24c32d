"""The card for a function that is judged by its exact distributions.

A function that is still as the lesson has it is no attempt: its card says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from inspect import unwrap
from typing import Any

from speclab.check.calls import Failed, time_limit
from speclab.check.mistakes import Mistake, is_same, likely_mistake
from speclib.worlds.enumerator import NotRepeatable

from .card import Card, almost_right_card, not_begun, right_card, wrong_card

ASKED_FOR_COINS = (
    "Run once more, your function did something else. Here every outcome is tried, so "
    "chance may come from `coin()`, or from the world's coins, alone: not from random, "
    "nor from numpy."
)

Differences = Callable[[Sequence[Any]], str | None]


def judge_distributions(
    function: Callable[..., Any],
    distributions_of: Callable[[Callable[..., Any]], Sequence[Any]],
    difference_in: Differences,
    mistakes: Iterable[Mistake],
    praise: str,
    without_chance: Differences = lambda distributions: None,
) -> Card:
    """Right, or the first difference and the mistake that makes the same ones.

    ``distributions_of(function)`` runs it in every case; it may raise Failed.
    ``difference_in(distributions)`` says what is wrong with them; None: nothing is.
    ``without_chance`` says what is wrong with probability 0, which is almost right.
    """
    if is_untouched(function):
        return not_begun()
    try:
        with time_limit():
            distributions = distributions_of(function)
            difference = difference_in(distributions)
            is_random = difference is not None and not is_same(
                distributions_of(function), distributions
            )
    except NotRepeatable:
        return own_randomness()
    except Failed as failed:
        return wrong_card(str(failed))

    flaw = difference or without_chance(distributions)
    if flaw is None:
        return right_card(praise)
    if is_random:
        return own_randomness(flaw)

    of_mistake = partial(_distributions_of_ours, distributions_of)
    mistake = likely_mistake(distributions, mistakes, of_mistake)
    card_of = wrong_card if difference else almost_right_card
    if mistake is None:
        return card_of(flaw)
    return card_of(flaw, mistake.question, cause=mistake.name)


@cache
def _distributions_of_ours(
    distributions_of: Callable[[Callable[..., Any]], Sequence[Any]],
    solution: Callable[..., Any],
) -> Sequence[Any] | None:
    """What a mistake of ours gives; computed once. None where it fails."""
    try:
        return distributions_of(solution)
    except Failed:
        return None


def own_randomness(
    problem: str = "Your function did something else each time.",
) -> Card:
    """The card of a function that takes chance from elsewhere than its coins."""
    return wrong_card(problem, ASKED_FOR_COINS, cause="own randomness")


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
