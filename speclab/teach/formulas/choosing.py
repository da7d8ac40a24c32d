"""Exercises on choosing a method: when a draft pays, and how long it should be."""

from __future__ import annotations

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula
from .round_formulas import expected_tokens


def break_even(c: float) -> float:
    """1 / c: there (1 + alpha) / (1 + 1 / c) is 1. Source: Leviathan et al. 2023,
    corollary 3.9.
    """
    return min(1.0, 1 / c)


BREAK_EVEN = Formula(
    name="break_even",
    arguments=("c",),
    cases=((5.0,), (2.0,), (1.25,), (1.0,), (3.0,), (64.0,)),
    solution=break_even,
    asked_for="the lowest acceptance rate",
    mistakes=(
        Mistake(
            "draft forgotten",
            "A round also takes the draft's pass, which is 1 / c of a target pass.",
            lambda c: 0.0,
        ),
        Mistake(
            "bonus forgotten",
            "A round commits the accepted draft and one token of the target's own: "
            "1 + alpha in the mean.",
            lambda c: 1 + 1 / c,
        ),
        Mistake(
            "ratio upside down",
            "c is a target pass over a draft pass here; in Leviathan's paper it is the "
            "other way round.",
            lambda c: c,
        ),
        Mistake(
            "share left over",
            "Does a draft have to be right more often where drafting is faster?",
            lambda c: 1 - 1 / c,
        ),
    ),
    praise="So a fast draft model may be wrong often, a slow one hardly ever.",
)


def best_gamma(alpha: float, c: float) -> int:
    """The gamma of most (1 + ... + alpha^gamma) / (gamma / c + 1). Source: Leviathan et
    al. 2023, theorem 3.8.
    """
    return max(range(1, 51), key=lambda gamma: _speedup(alpha, gamma, c))


def _speedup(alpha: float, gamma: int, c: float) -> float:
    return expected_tokens(alpha, gamma) / (gamma / c + 1)


BEST_GAMMA = Formula(
    name="best_gamma",
    arguments=("alpha", "c"),
    cases=(
        (0.8, 5.0),
        (0.6, 5.0),
        (0.9, 5.0),
        (0.8, 20.0),
        (0.3, 2.0),
        (0.9, 2.5),
        (0.99, 20.0),
        (1.0, 5.0),
    ),
    solution=best_gamma,
    asked_for="the best draft length",
    mistakes=(
        Mistake(
            "c taken",
            "That is PEARL's best length, where both models work at once. Here they "
            "take turns: what does one more draft cost, and what does it bring?",
            lambda alpha, c: round(c),
        ),
        Mistake(
            "time forgotten",
            "Longer drafts always commit more per round. But how long does a round "
            "take?",
            lambda alpha, c: max(range(1, 51), key=lambda g: expected_tokens(alpha, g)),
        ),
        Mistake(
            "tokens forgotten",
            "The shortest round is not the fastest way to write: tokens per second "
            "count.",
            lambda alpha, c: 1,
        ),
        Mistake(
            "bonus forgotten",
            "Every round commits a token of the target's own, too.",
            lambda alpha, c: max(
                range(1, 51),
                key=lambda g: (expected_tokens(alpha, g) - 1) / (g / c + 1),
            ),
        ),
    ),
    praise="It may be shorter or longer than c: at c = 5 it is 2 for an α of 0.6, and "
    "7 for 0.9.",
)


def check_break_even(function: Answer) -> Card:
    """Checks ``function(c)``: the acceptance rate from which on speculative decoding
    with one draft per round is as fast as plain decoding.
    """
    return BREAK_EVEN.check(function)


def check_best_gamma(function: Answer) -> Card:
    """Checks ``function(alpha, c)``: the draft length from 1 to 50 with which
    speculative decoding is fastest in the mean.
    """
    return BEST_GAMMA.check(function)
