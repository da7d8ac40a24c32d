"""The exercise ``verify``: test drafted tokens and write what may be committed.

The student's function is run on every text that the draft model may write, and over
every outcome of its coins, in the cases of ``speclab.check.line``. So the
distribution of what it commits is known exactly, and is compared with the target's,
token by token. It must commit as many tokens as can be, too: 1 + sum of min(p, q) + ...

The first difference, in the smallest of the cases, is the counterexample on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from speclab.check.case import EQUAL, Distribution, shown
from speclab.check.coin import NewCoin
from speclab.check.line import CASES, LineCase
from speclab.check.line_mistakes import MISTAKES
from speclib.core.sampling import Row

from .attempt import judge_attempt
from .card import Card
from .judge import judge_distributions

Verify: TypeAlias = Callable[[list[int], list[Row], list[Row], NewCoin], Sequence[int]]

PRAISE = (
    "In all cases that were walked, with up to five tokens to choose from and up to "
    "five drafted, every token has exactly the target's distribution, and no "
    "more drafts can be accepted than yours accepts."
)


def check_verify(function: Verify) -> Card:
    """Checks ``function(drafted, q, p, coin)``: the tokens that a round commits.

    ``drafted``: gamma tokens. ``q``: gamma rows, from which they were drawn. ``p``: the
    target's gamma + 1 rows, the last of them after all drafts. ``coin()`` gives a new
    random number in [0, 1). Returns a list of tokens: the accepted ones and one more.
    """

    def judge() -> Card:
        return judge_distributions(
            function,
            distributions_of,
            _difference,
            MISTAKES,
            PRAISE,
            first_impossible,
        )

    return judge_attempt("verify", function, judge)


def distributions_of(verify: Verify) -> list[Distribution]:
    """What a function commits in each case; ``q`` and ``p`` come as lists of rows."""
    return [case.distribution(verify, list) for case in CASES]


def _difference(distributions: Sequence[Distribution]) -> str | None:
    """What is first wrong with what a function commits; None where nothing is."""
    for case, distribution in zip(CASES, distributions, strict=True):
        difference = case.difference(distribution)
        difference = difference or missing_tokens(case, distribution, case.most_tokens)
        if difference is not None:
            return difference
    return None


def first_impossible(distributions: Sequence[Distribution]) -> str | None:
    """What may be committed wrongly, though only with probability 0; or None."""
    for case, distribution in zip(CASES, distributions, strict=True):
        impossible = case.impossible(distribution)
        if impossible is not None:
            return impossible
    return None


def missing_tokens(
    case: LineCase, distribution: Distribution, most: float
) -> str | None:
    """How many tokens a pass commits, where it could be more: ``most``."""
    mean = case.rate(distribution)
    if mean > most - EQUAL:
        return None
    return (
        "Nothing is lost, but it is slower than it could be: with "
        f"q = {shown(case.draft[()])} and p = {shown(case.target[()])} a round "
        f"commits {mean:.4f} tokens in the mean; {most:.4f} are possible."
    )
