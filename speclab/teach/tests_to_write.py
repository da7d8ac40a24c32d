"""Tests of drafts that a student writes: ``verify``, ``block`` and ``pick``.

We run each test on every text that the draft model may write, with every outcome of its
coins. The result is the exact distribution of the committed tokens, which we compare
with the target's token by token. A test must also accept as many drafts as possible.
The first difference, in the smallest case, is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from speclab.check import candidate_mistakes, line_mistakes
from speclab.check.candidates import POSITIONS, Position
from speclab.check.candidates import Distribution as OfOneToken
from speclab.check.case import EQUAL, Distribution, shown
from speclab.check.coin import NewCoin, draw
from speclab.check.line import CASES, LineCase
from speclib.core.sampling import Row

from .card import Card
from .judge import RuleExercise
from .lesson_files import named_mistakes

Verify: TypeAlias = Callable[[list[int], list[Row], list[Row], NewCoin], Sequence[int]]
Pick: TypeAlias = Callable[[list[int], list[Row], Row, NewCoin], int]

PRAISE = (
    "In every case that we tried, with up to five tokens in the vocabulary and up to "
    "five drafts, each token has exactly the target's distribution, and no "
)


# -- a line of drafts ------------------------------------------------------------------
def check_verify(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``, the test in speculative decoding.

    ``drafted``: gamma tokens. ``q``: the gamma distributions that they were drawn from.
    ``p``: the target's gamma + 1 distributions, the last one after all drafts.
    ``coin()`` returns a new random number in [0, 1). The function returns the tokens
    that a round commits: the accepted drafts and one more.
    """
    return VERIFY.check(function)


def check_block(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``, the block test.

    It decides after it has seen all drafts. Arguments and result are as in
    ``check_verify``.
    """
    return BLOCK.check(function)


def _slower_than_verify(case: LineCase, distribution: Distribution) -> str | None:
    return _slower_than(case.most_tokens, case, distribution)


def _slower_than_block(case: LineCase, distribution: Distribution) -> str | None:
    return _slower_than(case.most_tokens_of_a_block, case, distribution)


def _slower_than(most: float, case: LineCase, distribution: Distribution) -> str | None:
    """The card's sentence if a round commits less than ``most`` tokens on average."""
    mean = case.rate(distribution)
    if mean > most - EQUAL:
        return None
    return (
        f"With q = {shown(case.draft[()])} and p = {shown(case.target[()])}, a round "
        f"commits {mean:.4f} tokens on average; {most:.4f} are possible."
    )


VERIFY = RuleExercise(
    "verify",
    CASES,
    list,
    _slower_than_verify,
    line_mistakes.MISTAKES,
    f"{PRAISE}more drafts can be accepted than yours accepts.",
)


# -- the block test, and its mistakes --------------------------------------------------
def block_with(
    stops_at_a_failure: bool = False,
    plain_residual: bool = False,
    is_cut: bool = True,
    by_weight_alone: bool = False,
    keeps_shortest: bool = False,
) -> Verify:
    """The block test, correct by default; each argument introduces a mistake."""

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
    """The residual after ``length`` drafts, not normalised."""
    left: Row = np.maximum(weights[length] * p[length] - q[length], 0)
    return left


BLOCKS = {
    "stopping at a failure": block_with(stops_at_a_failure=True),
    "residual without the weight": block_with(plain_residual=True),
    "weights not cut": block_with(is_cut=False),
    "beginnings by their weight alone": block_with(by_weight_alone=True),
    "shortest beginning kept": block_with(keeps_shortest=True),
}


BLOCK = RuleExercise(
    "block",
    CASES,
    list,
    _slower_than_block,
    (*named_mistakes("block", BLOCKS.items()), *line_mistakes.MISTAKES),
    f"{PRAISE}rule commits more tokens than yours.",
)


# -- candidates for one position -------------------------------------------------------
def check_pick(function: Pick) -> Card:
    """Checks ``function(candidates, q, p, coin)``, which returns the token to write.

    ``candidates``: tokens, drawn one after the other. ``q``: the distribution of each
    candidate, in which earlier candidates have probability 0. ``p``: the target's
    distribution. ``coin()`` returns a new random number in [0, 1).
    """
    return PICK.check(function)


def _rows(array: Row) -> Row | list[Row]:
    """Several distributions as a list; a single one unchanged."""
    return array if array.ndim == 1 else list(array)


def _slower_than_pick(position: Position, distribution: OfOneToken) -> str | None:
    found, possible = position.rate(distribution), position.most_hits
    if found >= possible - EQUAL:
        return None
    return (
        f"{position.words}: the token is a candidate with probability {found:.4f}; "
        f"{possible:.4f} is possible."
    )


PICK = RuleExercise(
    "pick",
    POSITIONS,
    _rows,
    _slower_than_pick,
    candidate_mistakes.MISTAKES,
    "In every case that we tried, with up to three candidates, the token has exactly "
    "the target's distribution, and is a candidate as often as with the reference "
    "implementation.",
)
