"""Exercises on reading tables: intervals, verdicts, and two ways of counting."""

from __future__ import annotations

import numpy as np

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula


def verdict(low: float, high: float, least: float, most: float) -> str:
    """What an interval says of a claim that a number lies between two others."""
    if least <= low and high <= most:
        return "yes"
    if high < least or most < low:
        return "no"
    return "open"


VERDICT = Formula(
    name="verdict",
    arguments=("low", "high", "least", "most"),
    cases=(
        (2.2, 2.4, 2.0, 3.0),
        (1.5, 1.8, 2.0, 3.0),
        (1.8, 2.2, 2.0, 3.0),
        (3.1, 3.4, 2.0, 3.0),
        (2.9, 3.1, 2.0, 3.0),
        (1.0, 4.0, 2.0, 3.0),
        (2.0, 3.0, 2.0, 3.0),
        (1.0, 2.0, 2.0, 3.0),
        (3.0, 4.0, 2.0, 3.0),
        (-1.0, 0.5, 0.0, 1.0),
        (1.96, 2.5, 2.0, 3.0),
        (5.0, 9.0, 2.0, 3.0),
    ),
    solution=verdict,
    asked_for="the verdict",
    mistakes=(
        Mistake(
            "middle of the interval",
            "The middle is one number. What if the true one lies at an end of the "
            "interval?",
            lambda low, high, least, most: (
                "yes" if least <= (low + high) / 2 <= most else "no"
            ),
        ),
        Mistake(
            "nothing open",
            "The interval lies partly inside what is claimed: is that a no?",
            lambda low, high, least, most: (
                "yes" if least <= low and high <= most else "no"
            ),
        ),
        Mistake(
            "overlap is enough",
            "The interval lies partly outside what is claimed: is that a yes?",
            lambda low, high, least, most: (
                "no" if high < least or most < low else "yes"
            ),
        ),
        Mistake(
            "one end forgotten",
            "A claim has two ends: what if the number is too large?",
            lambda low, high, least, most: (
                "yes" if least <= low else "no" if high < least else "open"
            ),
        ),
    ),
    praise="An open claim is no defeat: its note says how many prompts would do.",
)


def interval_of(values: tuple[float, ...], t: float) -> tuple[float, float]:
    """Student's: mean +- t s / sqrt(n), with s from n - 1."""
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
    return float(mean - t * error), float(mean + t * error)


INTERVAL = Formula(
    name="interval",
    arguments=("values", "t"),
    cases=(
        ((1.0, 3.0), 12.71),
        ((2.0, 2.0, 2.0), 4.30),
        ((2.0, 2.5, 3.0, 2.1), 3.18),
        ((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0), 2.36),
        ((1.5, 0.5, 2.0, 4.0, 1.0, 3.0, 2.5, 7.0, 9.0, 0.5), 2.26),
    ),
    solution=interval_of,
    asked_for="the interval",
    mistakes=(
        Mistake(
            "divided by n",
            "The mean is made of the same values, so their squared distances from it "
            "are too small: what are they divided by?",
            lambda values, t: (
                np.mean(values) - t * np.std(values) / np.sqrt(len(values)),
                np.mean(values) + t * np.std(values) / np.sqrt(len(values)),
            ),
        ),
        Mistake(
            "spread of the values",
            "This is how far single values lie apart. The mean of n values varies "
            "less.",
            lambda values, t: (
                np.mean(values) - t * np.std(values, ddof=1),
                np.mean(values) + t * np.std(values, ddof=1),
            ),
        ),
        Mistake(
            "lowest and highest value",
            "Where the values lie says little of their mean.",
            lambda values, t: (min(values), max(values)),
        ),
        Mistake(
            "t forgotten",
            "Mean ± one standard error misses a third of the time, and half of the "
            "time for two values. Where does t come in?",
            lambda values, t: interval_of(values, 1.0),
        ),
    ),
    praise="With two values t is 12.7: that is why one more prompt helps so much.",
)


def two_counts(passes: tuple[tuple[int, int], ...]) -> tuple[float, float]:
    """Accepted per target pass, and per rejection. Sources: Leviathan et al. 2023;
    PEARL, table 7.
    """
    accepted = sum(own_accepted for own_accepted, _rejected in passes)
    rejected = sum(own_rejected for _accepted, own_rejected in passes)
    return accepted / len(passes), accepted / rejected


TWO_COUNTS = Formula(
    name="two_counts",
    arguments=("passes",),
    cases=(
        (((4, 0), (3, 1), (4, 0), (4, 0), (1, 1)),),
        (((2, 1), (0, 1), (4, 0), (4, 1)),),
        (((5, 1), (5, 1)),),
        (((1, 1), (3, 0), (2, 1), (4, 0)),),  # it ends between two rejections
    ),
    solution=two_counts,
    asked_for="accepted drafts per pass and per rejection",
    mistakes=(
        Mistake(
            "replacements counted",
            "Accepted drafts alone are counted here, not what the target model writes "
            "in place of a rejected one.",
            lambda passes: (
                sum(a + r for a, r in passes) / len(passes),
                sum(a + r for a, r in passes) / sum(r for _, r in passes),
            ),
        ),
        Mistake(
            "one more run counted",
            "Rejections are counted, not the stretches between and around them.",
            lambda passes: (
                sum(a for a, _ in passes) / len(passes),
                sum(a for a, _ in passes) / (1 + sum(r for _, r in passes)),
            ),
        ),
        Mistake(
            "counts exchanged",
            "The number per pass comes first.",
            lambda passes: two_counts(passes)[::-1],
        ),
        Mistake(
            "passes without a rejection left out",
            "What was accepted in passes without a rejection counts, too.",
            lambda passes: (
                sum(a for a, _ in passes) / len(passes),
                sum(a for a, r in passes if r) / sum(r for _, r in passes),
            ),
        ),
    ),
    praise="The same run, and one of its counts can be several times the other.",
)


def check_verdict(function: Answer) -> Card:
    """Checks ``function(low, high, least, most)``: "yes", "no" or "open".

    The 95 % interval of a number is ``low`` to ``high``; a claim says that the number
    lies between ``least`` and ``most``.
    """
    return VERDICT.check(function)


def check_interval(function: Answer) -> Card:
    """Checks ``function(values, t)``: Student's interval of the mean, (low, high).

    ``t``: the number of standard errors on either side.
    """
    return INTERVAL.check(function)


def check_two_counts(function: Answer) -> Card:
    """Checks ``function(passes)``: accepted drafts per pass, and per rejection.

    ``passes``: (accepted, rejected) for each target pass, where rejected is 0 or 1.
    """
    return TWO_COUNTS.check(function)
