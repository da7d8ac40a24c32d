"""The card for a function that is judged by its exact distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .calls import Failed, time_limit
from .card import Card, right, wrong
from .mistakes import Mistake, likely_mistake


def judge_distributions(
    function: Callable[..., Any],
    distributions_of: Callable[[Callable[..., Any]], Sequence[Any]],
    difference_in: Callable[[Sequence[Any]], str | None],
    mistakes: Iterable[Mistake],
    praise: str,
) -> Card:
    """Right, or the first difference and the mistake that makes the same ones.

    ``distributions_of(function)`` runs it in every case; it may raise Failed.
    ``difference_in(distributions)`` says what is wrong with them; None: nothing is.
    """
    try:
        with time_limit():
            distributions = distributions_of(function)
    except Failed as failed:
        return wrong(str(failed))

    difference = difference_in(distributions)
    if difference is None:
        return right(praise)

    def of_mistake(solution: Callable[..., Any]) -> Sequence[Any] | None:
        try:
            return distributions_of(solution)
        except Failed:
            return None

    mistake = likely_mistake(distributions, mistakes, of_mistake)
    if mistake is None:
        return wrong(difference)
    return wrong(difference, mistake.question, cause=mistake.name)
