"""Exercises on DuoDecoding: the time of a round, and how many sequences it has."""

from __future__ import annotations

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula


def round_of_duodecoding(gamma: int, k: int, draft: float, target: float) -> float:
    """One pass gives all first tokens, then each token takes one. Source: ours."""
    length = gamma // k
    return max((1 + k * (length - 1)) * draft, target)


DUO_ROUND = Formula(
    name="duo_round",
    arguments=("gamma", "k", "draft", "target"),
    cases=(
        (6, 2, 1.0, 3.0),
        (6, 2, 1.0, 6.0),
        (8, 4, 1.0, 2.0),
        (6, 1, 0.5, 1.0),
        (4, 4, 0.25, 0.5),
        (8, 3, 1.0, 2.0),  # three sequences of two tokens
    ),
    solution=round_of_duodecoding,
    asked_for="the time of a round",
    mistakes=(
        Mistake(
            "a pass for each token",
            "The draft model's first pass gives a chance to every token, so it gives "
            "the first tokens of all sequences.",
            lambda gamma, k, draft, target: max(gamma // k * k * draft, target),
        ),
        Mistake(
            "one sequence counted",
            "The draft model writes the sequences one after the other.",
            lambda gamma, k, draft, target: max(gamma // k * draft, target),
        ),
        Mistake(
            "only the draft counted",
            "And if the target's pass takes longer?",
            lambda gamma, k, draft, target: (1 + k * (gamma // k - 1)) * draft,
        ),
        Mistake(
            "models taking turns",
            "Both models begin at the same time.",
            lambda gamma, k, draft, target: (1 + k * (gamma // k - 1)) * draft + target,
        ),
    ),
    praise="The more sequences, the more of their tokens come from the first pass.",
)


def count_of_sequences(first: tuple[float, ...], second: float, gamma: int) -> int:
    """How many first tokens exceed theta; a divisor of gamma. Source: DuoDecoding,
    section 3.2, and its published code.
    """
    return _fitting(_likely(first, max(first) * second), gamma)


def _likely(first: tuple[float, ...], theta: float) -> int:
    """How many tokens are likelier than ``theta``; at least one."""
    return max(1, sum(chance > theta for chance in first))


def _fitting(likely: int, gamma: int) -> int:
    """The most sequences, of at most so many, that divide the budget."""
    return max(k for k in range(1, likely + 1) if gamma % k == 0)


SEQUENCES = Formula(
    name="sequences",
    arguments=("first", "second", "gamma"),
    cases=(
        ((0.50, 0.25, 0.20, 0.05), 0.45, 6),
        ((0.50, 0.25, 0.20, 0.05), 0.45, 5),
        ((0.40, 0.30, 0.20, 0.10), 0.40, 6),
        ((0.30, 0.25, 0.20, 0.15, 0.10), 0.30, 8),
        ((0.60, 0.30, 0.10), 0.90, 6),
        ((0.90, 0.10), 1.00, 4),
        ((0.10, 0.20, 0.50, 0.20), 0.30, 4),  # the likeliest is not the first
        ((0.50, 0.25, 0.25), 0.50, 6),  # as likely as the limit is not likelier
        ((0.25, 0.25, 0.25, 0.25), 0.50, 4),  # all are equally likely
        ((0.10,) * 10, 0.50, 20),
    ),
    solution=count_of_sequences,
    asked_for="the number of sequences",
    mistakes=(
        Mistake(
            "budget not divided",
            "All sequences have the same length: which numbers divide the budget?",
            lambda first, second, gamma: _likely(first, max(first) * second),
        ),
        Mistake(
            "second token alone",
            "The second token is of use only if the first one is right, too: how "
            "likely is it that both are?",
            lambda first, second, gamma: _fitting(_likely(first, second), gamma),
        ),
        Mistake(
            "likeliest not counted",
            "The likeliest first token begins a sequence, too.",
            lambda first, second, gamma: _fitting(
                max(1, _likely(first, max(first) * second) - 1), gamma
            ),
        ),
        Mistake(
            "one sequence more",
            "Is the likeliest first token counted twice?",
            lambda first, second, gamma: _fitting(
                1 + _likely(first, max(first) * second), gamma
            ),
        ),
    ),
    praise="So an unsure draft model splits its budget, and a sure one does not.",
)


def check_duo_round(function: Answer) -> Card:
    """Checks ``function(gamma, k, draft, target)``: the seconds of a round of
    DuoDecoding with ``k`` sequences of gamma // k tokens.

    ``draft`` and ``target``: seconds of one pass.
    """
    return DUO_ROUND.check(function)


def check_sequences(function: Answer) -> Card:
    """Checks ``function(first, second, gamma)``: how many sequences are drafted.

    ``first``: the draft's chances of all tokens at the first position. ``second``: the
    highest chance at the second one, after the likeliest token.
    """
    return SEQUENCES.check(function)
