"""A number with the range in which it lies, and comparisons that have three answers.

A printed number lies within half a unit of its last digit, a simulated one within its
95 % interval, and one that is computed exactly is its own range. Knows no paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Answer = Literal["yes", "no", "open"]

# "arithmetic" follows from no print and no run: how a number format rounds.
Kind = Literal["paper", "virtual", "emulated", "measured", "arithmetic"]
Relation = Literal["equals", "at most", "at least"]

# What an answer rests on: two printed statements, arithmetic on what is printed, a walk
# over every outcome, our simulated clock, published code as we read it, or a run that
# was timed.
Basis = Literal["print", "arithmetic", "every outcome", "clock", "code", "measured"]

ROUNDING = 1e-9  # what floating point may be off, nothing else
LARGE = 1e9  # whole numbers from here on are not written in full


@dataclass(frozen=True)
class Quantity:
    """A number of a kind, and the lowest and the highest that it may be in truth."""

    value: float
    low: float
    high: float
    kind: Kind = "virtual"

    @classmethod
    def exact(cls, value: float, kind: Kind = "virtual") -> Quantity:
        """A number of which nothing is left open."""
        return cls(value, value, value, kind)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


Quantities = dict[str, Quantity]


def compare(
    left: Quantity, relation: Relation, right: Quantity, within: float = 0.0
) -> Answer:
    """Whether ``left`` stands in a relation to ``right``.

    yes    whatever the two are within their ranges
    no     whatever the two are within their ranges
    open   it depends on where in its range each of them lies

    ``within`` is a tolerance, as a share of ``right``.
    """
    tolerance = within * abs(right.value) + ROUNDING
    highest_excess = left.high - right.low
    lowest_excess = left.low - right.high

    if relation == "at most":
        return _settle(highest_excess <= tolerance, lowest_excess > tolerance)
    if relation == "at least":
        return _settle(lowest_excess >= -tolerance, highest_excess < -tolerance)

    is_certain = highest_excess <= tolerance and lowest_excess >= -tolerance
    is_impossible = lowest_excess > tolerance or highest_excess < -tolerance
    return _settle(is_certain, is_impossible)


def _settle(is_certain: bool, is_impossible: bool) -> Answer:
    if is_certain:
        return "yes"
    return "no" if is_impossible else "open"


def compare_printed(
    left: Quantity, relation: Relation, right: Quantity, within: float = 0.0
) -> Answer:
    """The same of printed numbers: yes unless the printed digits rule it out."""
    answer = compare(left, relation, right, within)
    return "yes" if answer == "open" else answer


def digits(value: float, significant: int = 4) -> str:
    """A value as a reader checks it: whole numbers in full, others rounded."""
    if value == round(value) and abs(value) < LARGE:
        return f"{value:.0f}"
    return f"{value:.{significant}g}"
