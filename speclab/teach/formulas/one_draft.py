"""Exercises on what becomes of a draft.

Its chance, its replacement, and how many samples show a bug.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card
from speclib.core.sampling import Row
from speclib.core.sampling import residual as right_residual

from .formula import Answer, Formula


def distribution(*probabilities: float) -> Row:
    """A distribution."""
    return np.array(probabilities)


# Pairs of distributions, the plainest first. In the last two a token has no chance.
DISTRIBUTIONS = (
    (distribution(0.8, 0.2), distribution(0.5, 0.5)),
    (distribution(0.2, 0.3, 0.5), distribution(0.5, 0.25, 0.25)),
    (
        distribution(0.2, 0.3, 0.5),
        distribution(0.5, 0.2, 0.3),
    ),  # two are missing, with other chances
    (distribution(0.1, 0.6, 0.3), distribution(0.3, 0.3, 0.4)),
    # The likeliest token is drafted too often, and one is equally likely.
    (distribution(0.5, 0.3, 0.2), distribution(0.7, 0.1, 0.2)),
    (
        distribution(0.1, 0.2, 0.3, 0.4),
        distribution(0.4, 0.15, 0.2, 0.25),
    ),  # three are missing
    (distribution(0.0, 0.4, 0.6), distribution(0.2, 0.8, 0.0)),
    (distribution(0.0, 1.0, 0.0), distribution(0.25, 0.5, 0.25)),
)


def _cases_with_tokens() -> list[tuple[Row, Row, int]]:
    """Every pair of distributions with every token that the draft may write."""
    cases = []
    for p, q in DISTRIBUTIONS:
        for token in np.flatnonzero(q):
            cases.append((p, q, int(token)))
    return cases


# -- the chance of acceptance ----------------------------------------------------------
def acceptance_chance(p: Row, q: Row, token: int) -> float:
    """min(1, p(x) / q(x)). Source: Leviathan et al. 2023, section 2.3."""
    return min(1.0, float(p[token] / q[token]))


ACCEPTANCE = Formula(
    name="acceptance",
    arguments=("p", "q", "token"),
    cases=_cases_with_tokens(),
    solution=acceptance_chance,
    asked_for="the chance that the token is accepted",
    mistakes=(
        Mistake(
            "chance above 1",
            "A chance is at most 1: what if the target model likes the token more than "
            "the draft model does?",
            lambda p, q, token: p[token] / q[token],
        ),
        Mistake(
            "ratio upside down",
            "Which of the two models has the last word? Look at what is divided by "
            "what.",
            lambda p, q, token: min(1.0, q[token] / p[token]) if p[token] else 1.0,
        ),
        Mistake(
            "target's probability alone",
            "This is how often the target model writes the token itself. But the draft "
            "model proposed it, with probability q(x).",
            lambda p, q, token: p[token],
        ),
        Mistake(
            "smaller of the two",
            "This is the chance that the token is drafted and accepted. Given that it "
            "was drafted, the chance is larger.",
            lambda p, q, token: min(p[token], q[token]),
        ),
    ),
    praise="That is min(1, p(x) / q(x)), in every case we tried.",
)


# -- the residual ----------------------------------------------------------------------
def _over_its_sum(values: Row) -> Row:
    with np.errstate(all="ignore"):
        normalised: Row = values / values.sum()
    return normalised


RESIDUAL = Formula(
    name="residual",
    arguments=("p", "q"),
    cases=DISTRIBUTIONS,
    solution=right_residual,
    asked_for="the residual",
    mistakes=(
        Mistake(
            "residual not normalised",
            "These are the right proportions, but do they add up to 1?",
            lambda p, q: np.maximum(p - q, 0),
        ),
        Mistake(
            "residual from p",
            "After a rejection p itself would write the drafted tokens too often: what "
            "has been accepted already must be taken off.",
            lambda p, q: p,
        ),
        Mistake(
            "negative probabilities",
            "A probability is never below 0: what about tokens that the draft model "
            "likes more than the target model does?",
            lambda p, q: p - q,
        ),
        Mistake(
            "excess relative to q",
            "How much of p is missing at each token? It is a difference, whatever the "
            "draft model's own chance of that token is.",
            lambda p, q: _over_its_sum(np.maximum(p - q, 0) / np.where(q > 0, q, 1)),
        ),
        Mistake(
            "difference without sign",
            "Tokens that the draft model likes more than the target model does have "
            "been accepted often enough: they should get nothing.",
            lambda p, q: _over_its_sum(np.abs(p - q)),
        ),
        Mistake(
            "upside down",
            "This is what the draft model has too much of. What does it have too "
            "little of?",
            lambda p, q: _over_its_sum(np.maximum(q - p, 0)),
        ),
        Mistake(
            "what both share",
            "This is the part that is accepted already. What is missing until p is "
            "full?",
            lambda p, q: _over_its_sum(np.minimum(p, q)),
        ),
    ),
    praise="Accepted tokens and these replacements together give p in all cases tried.",
)


# -- how many samples show a bug -------------------------------------------------------
def samples_to_see(p: float, found: float) -> float:
    """How many tokens until two standard errors are as large as the difference."""
    return 4 * p * (1 - p) / (found - p) ** 2


def _square_forgotten(solution: Answer) -> Mistake:
    return Mistake(
        "square forgotten",
        "2 √(p (1 - p) / n) is to be as large as the difference. Have you squared all "
        "of both sides: the 2, the root, and the difference?",
        solution,
    )


SAMPLES = Formula(
    name="samples",
    arguments=("p", "found"),
    cases=((0.5, 0.6), (0.2, 0.26), (0.5, 0.49), (0.1, 0.101)),
    solution=samples_to_see,
    asked_for="the number of samples",
    mistakes=(
        Mistake(
            "one standard error",
            "By chance one standard error is exceeded in a third of all cases: ask for "
            "two.",
            lambda p, found: p * (1 - p) / (found - p) ** 2,
        ),
        Mistake(
            "square root forgotten",
            "The standard error of n samples is √(p (1 - p) / n): solve for n.",
            lambda p, found: 2 * p * (1 - p) / abs(found - p),
        ),
        Mistake(
            "standard error of one half",
            "0.5 / √n is the standard error where p is 0.5. What is it for another p?",
            lambda p, found: (2 * 0.5 / (found - p)) ** 2,
        ),
        _square_forgotten(lambda p, found: 2 * sqrt(p * (1 - p)) / abs(found - p)),
        _square_forgotten(lambda p, found: 4 * p * (1 - p) / abs(found - p)),
        _square_forgotten(lambda p, found: 2 * p * (1 - p) / (found - p) ** 2),
        _square_forgotten(lambda p, found: 1 / abs(found - p)),
        Mistake(
            "variance of the wrong probability",
            "If nothing is wrong, tokens come with probability p: take its variance.",
            lambda p, found: 4 * found * (1 - found) / (found - p) ** 2,
        ),
    ),
    praise="Half the difference takes four times as many samples.",
    is_count=True,
)


def check_acceptance(function: Answer) -> Card:
    """Checks ``function(p, q, token)``: the chance that a drafted token is accepted.

    ``p`` and ``q`` are the target's and the draft's distributions, shape [V]; the draft
    model drew ``token`` from ``q``.
    """
    return ACCEPTANCE.check(function)


def check_residual(function: Answer) -> Card:
    """Checks ``function(p, q)``: what a rejected token's replacement is drawn from.

    All are distributions, shape [V].
    """
    return RESIDUAL.check(function)


def check_samples(function: Answer) -> Card:
    """Checks ``function(p, found)``: how many samples show a bug.

    A token should come with probability ``p`` and comes with ``found``. Asked for is
    the number of samples at which the difference is two standard errors.
    """
    return SAMPLES.check(function)
