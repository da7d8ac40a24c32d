"""Tests of drafts that a student writes: ``verify``, ``block`` and ``pick``.

Each is run on every text that the draft model may write, and over every outcome of its
coins. So the distribution of what it commits is known exactly, and is compared with the
target's, token by token. It must also accept as many drafts as can be. The first
difference, in the smallest of the cases, is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from speclab.check import candidate_mistakes, line_mistakes
from speclab.check.candidates import POSITIONS
from speclab.check.candidates import Distribution as OfOneToken
from speclab.check.case import EQUAL, Distribution, shown
from speclab.check.coin import NewCoin, draw
from speclab.check.line import CASES, LineCase
from speclib.core.sampling import Row

from .card import Card
from .judge import judge_distributions
from .lesson_files import named_mistakes

Verify: TypeAlias = Callable[[list[int], list[Row], list[Row], NewCoin], Sequence[int]]
Pick: TypeAlias = Callable[[list[int], list[Row], Row, NewCoin], int]

PRAISE = (
    "In all cases that were walked, with up to five tokens to choose from and up to "
    "five drafted, every token has exactly the target's distribution, and no "
)


# -- a line of drafts ------------------------------------------------------------------
def check_verify(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``: the tokens that a round commits.

    ``drafted``: gamma tokens. ``q``: gamma rows, from which they were drawn. ``p``: the
    target's gamma + 1 rows, the last of them after all drafts. ``coin()`` gives a new
    random number in [0, 1). Returns a list of tokens: the accepted ones and one more.
    """
    return judge_distributions(
        function,
        distributions_of,
        lambda distributions: _difference(distributions, _most_tokens),
        line_mistakes.MISTAKES,
        f"{PRAISE}more drafts can be accepted than yours accepts.",
        _first_impossible,
    )


def check_block(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``: the tokens that a round commits by the
    block test, which looks at all drafts before it decides.

    The arguments are those of ``check_verify``.
    """
    return judge_distributions(
        function,
        distributions_of,
        lambda distributions: _difference(distributions, _most_tokens_of_a_block),
        (*named_mistakes("block", BLOCKS.items()), *line_mistakes.MISTAKES),
        f"{PRAISE}rule commits more tokens than yours.",
        _first_impossible,
    )


def distributions_of(verify: Verify) -> list[Distribution]:
    """What a function commits in each case; ``q`` and ``p`` come as lists of rows."""
    return [case.distribution(verify, list) for case in CASES]


def _most_tokens(case: LineCase) -> float:
    return case.most_tokens


def _most_tokens_of_a_block(case: LineCase) -> float:
    return case.most_tokens_of_a_block


def _difference(
    distributions: Sequence[Distribution], most_tokens: Callable[[LineCase], float]
) -> str | None:
    """What is first wrong with what a function commits; None where nothing is.

    ``most_tokens``: how many tokens a round can commit in a case, on average.
    """
    for case, distribution in zip(CASES, distributions, strict=True):
        difference = case.difference(distribution)
        if difference is not None:
            return difference
        mean, most = case.rate(distribution), most_tokens(case)
        if mean <= most - EQUAL:
            return (
                "Nothing is lost, but it is slower than it could be: with "
                f"q = {shown(case.draft[()])} and p = {shown(case.target[()])} a round "
                f"commits {mean:.4f} tokens in the mean; {most:.4f} are possible."
            )
    return None


def _first_impossible(distributions: Sequence[Distribution]) -> str | None:
    """What may be committed wrongly, though only with probability 0; or None."""
    for case, distribution in zip(CASES, distributions, strict=True):
        impossible = case.impossible(distribution)
        if impossible is not None:
            return impossible
    return None


# -- the block test, and what is done otherwise ----------------------------------------
def block_with(
    stops_at_a_failure: bool = False,
    plain_residual: bool = False,
    is_cut: bool = True,
    by_weight_alone: bool = False,
    keeps_shortest: bool = False,
) -> Verify:
    """The block test, right where nothing is said otherwise."""

    def rule(
        drafted: list[int], q: list[Row], p: list[Row], coin: NewCoin
    ) -> list[int]:
        weights = [1.0]
        for index, token in enumerate(drafted):
            weight = weights[-1] * float(p[index][token]) / float(q[index][token])
            weights.append(min(1.0, weight) if is_cut else weight)

        kept = 0
        for length in range(1, len(drafted) + 1):
            chance = min(1.0, weights[length])
            if length < len(drafted) and not by_weight_alone:
                mass = _left_after(weights, q, p, length).sum()
                chance = mass / (mass + (1 - chance)) if mass > 0 else 0.0
            if coin() < chance:
                kept = length
                if keeps_shortest:
                    break
            elif stops_at_a_failure:
                break

        row = p[kept]
        if kept < len(drafted):
            left = _left_after(weights, q, p, kept)
            if plain_residual:
                left = np.maximum(p[kept] - q[kept], 0)
            row = left / left.sum() if left.sum() > 0 else row
        return [*drafted[:kept], draw(row, coin())]

    return rule


def _left_after(
    weights: Sequence[float], q: Sequence[Row], p: Sequence[Row], length: int
) -> Row:
    """What the target has to write itself after ``length`` kept drafts, by token."""
    left: Row = np.maximum(weights[length] * p[length] - q[length], 0)
    return left


BLOCKS = {
    "stopping at a failure": block_with(stops_at_a_failure=True),
    "residual without the weight": block_with(plain_residual=True),
    "weights not cut": block_with(is_cut=False),
    "beginnings by their weight alone": block_with(by_weight_alone=True),
    "shortest beginning kept": block_with(keeps_shortest=True),
}


# -- candidates for one position -------------------------------------------------------
def check_pick(function: Pick) -> Card:
    """Checks ``function(candidates, q, p, coin)``: the token that is written.

    ``candidates``: tokens, drawn one after the other. ``q``: for each the row that it
    was drawn from, in which those before it have no chance. ``p``: the target's
    distribution. ``coin()`` gives a new random number in [0, 1).
    """
    return judge_distributions(
        function,
        _distributions_of_pick,
        _difference_of_pick,
        candidate_mistakes.MISTAKES,
        "In all cases that were walked, with up to three candidates, the token has "
        "exactly the target's distribution, and is a candidate as often as this "
        "repository's own test makes it one.",
        _first_impossible_pick,
    )


def _distributions_of_pick(pick: Pick) -> list[OfOneToken]:
    """What a function gives at each position; ``q`` comes as a list of rows."""
    return [position.distribution(pick, _rows) for position in POSITIONS]


def _rows(array: Row) -> Row | list[Row]:
    """Several rows as a list of them; one as it is."""
    return array if array.ndim == 1 else list(array)


def _difference_of_pick(distributions: Sequence[OfOneToken]) -> str | None:
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


def _first_impossible_pick(distributions: Sequence[OfOneToken]) -> str | None:
    """What may be written wrongly, though only with probability 0; or None."""
    for position, distribution in zip(POSITIONS, distributions, strict=True):
        impossible = position.impossible(distribution)
        if impossible is not None:
            return impossible
    return None
