"""The exercise ``pick``: which of several candidates for one position is written.

It is tried on the positions of ``speclab.check.candidates``, over every outcome of
its coins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from speclab.check.candidate_mistakes import MISTAKES
from speclab.check.candidates import POSITIONS, Distribution
from speclab.check.case import EQUAL
from speclab.check.coin import NewCoin
from speclib.core.sampling import Row

from .attempt import judge_attempt
from .card import Card
from .judge import judge_distributions

Pick: TypeAlias = Callable[[list[int], list[Row], Row, NewCoin], int]

PRAISE = (
    "In all cases that were walked, with up to three candidates, the token has exactly "
    "the target's distribution, and is a candidate as often as this repository's own "
    "test makes it one."
)


def check_pick(function: Pick) -> Card:
    """Checks ``function(candidates, q, p, coin)``: the token that is written.

    ``candidates``: tokens, drawn one after the other. ``q``: for each the row that it
    was drawn from, in which those before it have no chance. ``p``: the target's
    distribution. ``coin()`` gives a new random number in [0, 1).
    """

    def judge() -> Card:
        return judge_distributions(
            function, _distributions, _difference, MISTAKES, PRAISE, _without_chance
        )

    return judge_attempt("pick", function, judge)


def _distributions(pick: Pick) -> list[Distribution]:
    """What a function gives at each position; ``q`` comes as a list of rows."""
    return [position.distribution(pick, _rows) for position in POSITIONS]


def _rows(array: Row) -> Row | list[Row]:
    """Several rows as a list of them; one as it is."""
    return array if array.ndim == 1 else list(array)


def _difference(distributions: Sequence[Distribution]) -> str | None:
    """Where a function's token is first not as it should be; None where it is."""
    for position, distribution in zip(POSITIONS, distributions, strict=True):
        difference = position.difference(distribution)
        if difference is not None:
            return difference
        found, possible = position.rate(distribution), position.most_hits
        if found < possible - EQUAL:
            return (
                f"Nothing is lost, but it is slower than it could be. {position.words}:"
                f" the token is a candidate with probability {found:.4f}; "
                f"{possible:.4f} is possible."
            )
    return None


def _without_chance(distributions: Sequence[Distribution]) -> str | None:
    """What may be written wrongly, though only with probability 0; or None."""
    for position, distribution in zip(POSITIONS, distributions, strict=True):
        impossible = position.impossible(distribution)
        if impossible is not None:
            return impossible
    return None
