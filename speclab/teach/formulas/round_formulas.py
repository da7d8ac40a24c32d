"""Exercises on rounds of SD and PEARL: their tokens, their seconds, and the speed."""

from __future__ import annotations

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula


# -- tokens of a round -----------------------------------------------------------------
def expected_tokens(alpha: float, gamma: int) -> float:
    """1 + alpha + ... + alpha^gamma. Source: Leviathan et al. 2023, equation 1."""
    return sum(alpha**i for i in range(gamma + 1))


EXPECTED_TOKENS = Formula(
    name="expected_tokens",
    arguments=("alpha", "gamma"),
    cases=(
        (0.5, 1),
        (0.5, 2),
        (0.8, 4),
        (0.0, 3),
        (0.9, 1),
        (1.0, 3),
        (0.9, 20),
    ),
    solution=expected_tokens,
    asked_for="the mean number of tokens in a round",
    mistakes=(
        Mistake(
            "bonus forgotten",
            "These are the accepted drafts. The target model adds a token of its own "
            "in every round: the replacement, or the bonus.",
            lambda alpha, gamma: sum(alpha**i for i in range(1, gamma + 1)),
        ),
        Mistake(
            "no bonus when all are accepted",
            "When all drafts are accepted, the target's pass has one row left over.",
            lambda alpha, gamma: sum(alpha**i for i in range(gamma)),
        ),
        Mistake(
            "drafts after a rejection counted",
            "The second draft counts only where the first one was accepted too.",
            lambda alpha, gamma: 1 + alpha * gamma,
        ),
        Mistake(
            "drafts after a rejection counted, bonus forgotten",
            "The second draft counts only where the first one was accepted too. And "
            "the target model adds a token of its own in every round.",
            lambda alpha, gamma: alpha * gamma,
        ),
        Mistake(
            "uncommitted tokens counted",
            "Drafted is not written: only committed tokens count.",
            lambda alpha, gamma: gamma + 1,
        ),
    ),
    praise="That is 1 + α + … + α^γ, also where every draft is accepted.",
)


# -- speed -----------------------------------------------------------------------------
def speed(rounds: list[tuple[int, int, int]], seconds: float) -> float:
    """Committed tokens per second."""
    return sum(committed for _drafted, _accepted, committed in rounds) / seconds


SPEED = Formula(
    name="speed",
    arguments=("rounds", "seconds"),
    cases=(
        ([(4, 2, 3)], 1.0),
        ([(4, 4, 5), (4, 0, 1)], 2.0),
        ([(3, 1, 2), (3, 3, 4), (3, 2, 3)], 1.5),
        ([(5, 0, 1), (5, 5, 3)], 0.8),  # the last round is cut at the end of the text
        ([(4, 2, 3), (4, 2, 3), (4, 1, 2)], 3.0),  # rounds may be alike
        ([(4, 1, 1), (4, 4, 4), (4, 2, 3)], 1.0),  # rounds of PEARL, some without extra
    ),
    solution=speed,
    asked_for="the speed in tokens per second",
    mistakes=(
        Mistake(
            "uncommitted tokens counted",
            "Drafted tokens that were rejected or discarded were never written: only "
            "committed ones count.",
            lambda rounds, seconds: sum(drafted for drafted, _, _ in rounds) / seconds,
        ),
        Mistake(
            "bonus forgotten",
            "The target model's own tokens, one in most rounds, are written too.",
            lambda rounds, seconds: (
                sum(accepted for _, accepted, _ in rounds) / seconds
            ),
        ),
        Mistake(
            "uncommitted tokens counted",
            "In the last round the text may end before all that was accepted: only "
            "committed tokens count.",
            lambda rounds, seconds: sum(a + 1 for _, a, _ in rounds) / seconds,
        ),
    ),
    praise="Only committed tokens count, so this speed can be compared with any other.",
)


# -- seconds of a round ----------------------------------------------------------------
def round_of_pearl(gamma: int, draft: float, target: float) -> float:
    """max(gamma t_draft, t_target). Source: PEARL, section 3.4."""
    return max(gamma * draft, target)


ROUND = Formula(
    name="round",
    arguments=("gamma", "draft", "target"),
    cases=(
        (2, 1.0, 5.0),
        (5, 1.0, 5.0),
        (8, 1.0, 5.0),
        (4, 0.02, 0.1),
        (1, 0.3, 0.2),
        (2, 0.125, 0.3125),
        (3, 0.25, 1.0),
    ),
    solution=round_of_pearl,
    asked_for="the time of a round of PEARL",
    mistakes=(
        Mistake(
            "models taking turns",
            "This is a round of speculative decoding, in which one waits for the "
            "other. In PEARL both begin at the same time.",
            lambda gamma, draft, target: gamma * draft + target,
        ),
        Mistake(
            "only the target counted",
            "And if the draft model needs longer for its gamma tokens?",
            lambda gamma, draft, target: target,
        ),
        Mistake(
            "only the draft counted",
            "And if the target's pass takes longer?",
            lambda gamma, draft, target: gamma * draft,
        ),
        Mistake(
            "the faster one counted",
            "A round ends when both are done.",
            lambda gamma, draft, target: min(gamma * draft, target),
        ),
        Mistake(
            "one draft counted",
            "The draft model writes gamma tokens in a round, one after the other.",
            lambda gamma, draft, target: max(draft, target),
        ),
    ),
    praise="A round of PEARL takes as long as the slower of the two.",
)


def check_expected_tokens(function: Answer) -> Card:
    """Checks ``function(alpha, gamma)``: the mean tokens that a round commits.

    Each draft is accepted with probability ``alpha``, independently of the others.
    """
    return EXPECTED_TOKENS.check(function)


def check_speed(function: Answer) -> Card:
    """Checks ``function(rounds, seconds)``: the tokens per second of a run.

    ``rounds`` is a list of (drafted, accepted, committed), one triple per round.
    """
    return SPEED.check(function)


def check_round(function: Answer) -> Card:
    """Checks ``function(gamma, draft, target)``: the seconds of a round of PEARL.

    ``draft`` and ``target``: seconds of one pass.
    """
    return ROUND.check(function)
