"""Bootstrap resamples of requests or texts: what a number would be of other ones.

Of a task with so many prompts and no more, the others are the rest of it
(``Resamples.of_population``).

Resamples are seeded by the number of requests and depend on nothing else. So there are
two cases where two numbers are compared resample by resample:

- of as many requests: resample i of both draws the same ones, they are paired;
- of another number of requests: they are drawn independently of each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import inf, sqrt
from typing import Any, Protocol, TypeVar

import numpy as np

from .spread import Spread

RESAMPLES = 1000

Numbers = TypeVar("Numbers", float, np.ndarray)


class MeasuredBeside(Protocol):
    """A measured cell, which may have been measured beside another one."""

    def is_the_same_as(self, other: Any) -> bool:
        """Whether both are the same number of the same run."""

    def spread_of_quotient(self, other: Any) -> Spread | None:
        """How much the quotient of both cells' corrections differs over requests.

        On the scale of logarithms. None where both were not measured by the same
        requests, or where too few cells tell it.
        """


@dataclass(frozen=True)
class Correction:
    """What brought replayed numbers to measured ones (see ``two_phase``).

    by         the factor, or where ``is_factor`` is false the difference
    error      its standard error: of a factor that of its logarithm
    freedom    degrees of freedom behind the error
    measured   how many requests were measured
    cell       the cell whose requests these are; None: of several cells
    """

    by: float
    is_factor: bool
    error: float
    freedom: float
    measured: int
    cell: MeasuredBeside | None = None

    def applied(self, replayed: Numbers) -> Numbers:
        """What was replayed, corrected."""
        return self.by * replayed if self.is_factor else self.by + replayed


@dataclass(frozen=True)
class Resamples:
    """A number as it comes out in each resample, ``values`` [RESAMPLES].

    ``requests`` is how many requests each resample draws. ``signed`` says that the
    number may be negative, as a difference may, even if none of ``values`` is.
    ``correction``: of a number that was replayed, what few measurements leave open.
    ``population``: how many requests there are in all; infinity: no end of them. Then
    ``values`` are already as near to each other as ``of_population`` brings them.
    ``share_in_doubt``: that part of the variance of so many requests is left open, even
    if there are no more of them.
    """

    values: np.ndarray
    requests: int
    signed: bool = False
    correction: Correction | None = None
    population: float = inf
    share_in_doubt: float = 0.0

    def of_population(
        self, population: float, value: float, in_doubt: float = 0.0
    ) -> Resamples:
        """The resamples if there are no more than ``population`` requests in all.

        Those of them that were run are known. So the resamples are moved towards the
        number, ``value``, until their variance is 1 - n / population times what it was:
        of all requests nothing is left open, or the part that is ``in_doubt`` anyhow.
        Source: Cochran, Sampling Techniques, third edition, 1977, chapter 2.6, the
        finite population correction.
        """
        left_open = max(in_doubt, share_left_open(self.requests, population))
        if left_open == 0:
            values = np.full_like(self.values, value)
        else:
            values = value + sqrt(left_open) * (self.values - value)
        return replace(
            self, values=values, population=population, share_in_doubt=in_doubt
        )


def share_left_open(requests: float, population: float) -> float:
    """The part of a variance over requests that so many of them leave open."""
    return max(0.0, 1 - requests / population)


@cache
def draw_resamples(n: int) -> np.ndarray:
    """How often each of ``n`` requests is drawn in each resample, [RESAMPLES, n]."""
    rng = np.random.default_rng(n)
    times = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)
    times.flags.writeable = False  # it is everybody's
    return times


def measured_once(value: float) -> Resamples:
    """The resamples of a number of one request, which are all the same."""
    return Resamples(np.full(RESAMPLES, value), requests=1)
