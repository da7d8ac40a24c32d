"""Exercises on SSD: the mean time of a round, and where a guess is worth most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula

Fan = tuple[int, ...]


def mean_round_of_ssd(gamma: int, hit: float, draft: float, target: float) -> float:
    """A fork beside a target pass, after a backup where nothing was ready. Source:
    ours, from arXiv:2603.03251.
    """
    return max((gamma + 1) * draft, target) + (1 - hit) * gamma * draft


SSD_ROUND = Formula(
    name="ssd_round",
    arguments=("gamma", "hit", "draft", "target"),
    cases=(
        (4, 1.0, 1.0, 8.0),
        (4, 0.0, 1.0, 8.0),
        (4, 0.75, 1.0, 8.0),
        (7, 0.75, 1.0, 4.0),
        (2, 0.5, 0.5, 1.0),
        (5, 0.9, 0.25, 1.5),
    ),
    solution=mean_round_of_ssd,
    asked_for="the mean time of a round",
    mistakes=(
        Mistake(
            "pass over the window forgotten",
            "Before it can guess, the draft model reads the window: that is a pass, "
            "too.",
            lambda gamma, hit, draft, target: (
                max(gamma * draft, target) + (1 - hit) * gamma * draft
            ),
        ),
        Mistake(
            "models taking turns",
            "The draft model guesses while the target model tests: when are both done?",
            lambda gamma, hit, draft, target: (
                (gamma + 1) * draft + target + (1 - hit) * gamma * draft
            ),
        ),
        Mistake(
            "misses for nothing",
            "After a miss nothing is ready: who waits for whom, and how long?",
            lambda gamma, hit, draft, target: max((gamma + 1) * draft, target),
        ),
        Mistake(
            "hits and misses swapped",
            "hit is the chance that the next window is ready.",
            lambda gamma, hit, draft, target: (
                max((gamma + 1) * draft, target) + hit * gamma * draft
            ),
        ),
        Mistake(
            "no guessing after a miss",
            "Once the backup has written a window, the target model tests it, and the "
            "draft model guesses beside it, as in any other round.",
            lambda gamma, hit, draft, target: (
                hit * max((gamma + 1) * draft, target)
                + (1 - hit) * (target + gamma * draft)
            ),
        ),
    ),
    praise="After a hit drafting costs nothing, if it fits beside a target pass.",
)


def chances_of_outcomes(fan: Fan, alpha: float) -> list[float]:
    """How often 0, 1, 2 ... drafts are accepted, of as many as there are outcomes less
    one."""
    gamma = len(fan) - 1
    chances = [(1 - alpha) * alpha**k for k in range(gamma)]
    return [*chances, alpha**gamma]


def gain_of_a_guess(count: int, power: float) -> float:
    """How much less often an outcome is missed by one guess more."""
    missed: float = float(count) ** -power
    still_missed: float = float(count + 1) ** -power
    return missed - still_missed


def most_useful_guess(fan: Fan, alpha: float, power: float) -> int:
    """After how many accepted drafts one more guess saves most misses. Source: the
    power law of arXiv:2603.03251.
    """
    chances = chances_of_outcomes(fan, alpha)
    gains = [
        chance * gain_of_a_guess(count, power)
        for chance, count in zip(chances, fan, strict=True)
    ]
    return int(np.argmax(gains))


def _where(worth: Callable[[Fan, float, float], list[float]]) -> Answer:
    """An answer that takes the place of the largest ``worth``."""
    return lambda fan, alpha, power: int(np.argmax(worth(fan, alpha, power)))


NEXT_GUESS = Formula(
    name="next_guess",
    arguments=("fan", "alpha", "power"),
    cases=(
        ((1, 1, 1), 0.8, 1.0),  # all pass with 0.64
        ((1, 1, 1), 0.5, 1.0),  # none passes with 0.5
        ((1, 1, 4), 0.8, 1.0),
        ((3, 1, 2), 0.5, 1.0),
        ((3, 2, 1, 1), 0.6, 0.5),
        ((2, 2, 1, 1), 0.6, 2.0),
        ((4, 1, 1, 1, 6), 0.7, 1.0),
        ((5, 4, 3, 2, 9), 0.9, 1.5),
    ),
    solution=most_useful_guess,
    asked_for="the number of accepted drafts",
    mistakes=(
        Mistake(
            "likeliest outcome",
            "That outcome comes most often, but it may have many guesses already: how "
            "much less often is it missed with one more?",
            _where(lambda fan, alpha, power: chances_of_outcomes(fan, alpha)),
        ),
        Mistake(
            "fewest guesses",
            "And how often does that outcome come?",
            _where(lambda fan, alpha, power: [-float(count) for count in fan]),
        ),
        Mistake(
            "largest share of misses",
            "That is where most misses are. Where does one guess more take most of "
            "them away? Compare F ** -power with (F + 1) ** -power.",
            _where(
                lambda fan, alpha, power: [
                    chance * count**-power
                    for chance, count in zip(
                        chances_of_outcomes(fan, alpha), fan, strict=True
                    )
                ]
            ),
        ),
        Mistake(
            "all accepted taken for a failure",
            "That all gamma drafts pass has the chance alpha ** gamma: there is no "
            "failure after them.",
            _where(
                lambda fan, alpha, power: [
                    (1 - alpha) * alpha**k * gain_of_a_guess(count, power)
                    for k, count in enumerate(fan)
                ]
            ),
        ),
    ),
    praise="A budget that is spent so, guess by guess, misses least.",
)


def check_ssd_round(function: Answer) -> Card:
    """Checks ``function(gamma, hit, draft, target)``: the mean seconds of a round of
    SSD whose backup drafts.

    ``hit``: the chance that an outcome was guessed. ``draft``, ``target``: seconds of
    one pass, however wide.
    """
    return SSD_ROUND.check(function)


def check_next_guess(function: Answer) -> Card:
    """Checks ``function(fan, alpha, power)``: after how many accepted drafts one more
    guess is worth most.

    ``fan``: the guesses there are after 0, 1, ... gamma accepted drafts. With F of them
    an outcome is missed with the chance F ** -power.
    """
    return NEXT_GUESS.check(function)
