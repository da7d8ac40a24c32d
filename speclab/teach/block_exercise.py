"""The exercise ``block``: test drafted tokens all together.

It is judged as ``verify`` is, in the same cases. But the student's function must commit
as many tokens as a rule can that looks at all drafts before it decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speclab.check.case import Distribution
from speclab.check.coin import NewCoin, draw
from speclab.check.line import CASES
from speclab.check.line_mistakes import MISTAKES
from speclab.check.mistakes import Mistake
from speclib.core.sampling import Row

from .attempt import judge_attempt
from .card import Card
from .judge import judge_distributions
from .verify_exercise import Verify, distributions_of, first_impossible, missing_tokens

PRAISE = (
    "In all cases that were walked, with up to five tokens to choose from and up to "
    "five drafted, every token has exactly the target's distribution, and no rule "
    "commits more tokens than yours."
)


def check_block(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``: the tokens that a round commits by the
    block test.

    The arguments are those of ``check_verify``.
    """

    def judge() -> Card:
        return judge_distributions(
            function,
            distributions_of,
            _difference,
            (*BLOCK_MISTAKES, *MISTAKES),
            PRAISE,
            first_impossible,
        )

    return judge_attempt("block", function, judge)


def _difference(distributions: Sequence[Distribution]) -> str | None:
    """What is first wrong with what a function commits; None where nothing is."""
    for case, distribution in zip(CASES, distributions, strict=True):
        difference = case.difference(distribution) or missing_tokens(
            case, distribution, case.most_tokens_of_a_block
        )
        if difference is not None:
            return difference
    return None


# -- the test, and what is done otherwise ----------------------------------------------
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


BLOCK_MISTAKES = (
    Mistake(
        "stopping at a failure",
        "Does your test end at the first beginning that does not come up? A longer one "
        "may come up all the same: look at all of them, and keep the longest.",
        block_with(stops_at_a_failure=True),
    ),
    Mistake(
        "residual without the weight",
        "After a beginning that is kept with weight w, the next token is drawn from "
        "what w * p has more than q, not from what p has.",
        block_with(plain_residual=True),
    ),
    Mistake(
        "weights not cut",
        "A weight is cut at 1 after each draft, before the next ratio is taken in.",
        block_with(is_cut=False),
    ),
    Mistake(
        "beginnings by their weight alone",
        "Only all drafts together come up with their weight. A shorter beginning comes "
        "up with S / (S + 1 - weight).",
        block_with(by_weight_alone=True),
    ),
    Mistake(
        "shortest beginning kept",
        "Of the beginnings that come up the longest is kept.",
        block_with(keeps_shortest=True),
    ),
)
