"""Numbers with their 95 % intervals.

There is one interval for everything: the ledger's low and high, the error bars of
charts, and what claims are judged by. It is a t interval around the number, with the
bootstrap's standard error::

    half-width = t(0.975, n - 1) * sqrt(n / (n - 1)) * sd of the resamples

Why not the middle 95 % of the resamples, which is the better known bootstrap interval?
Because there are few prompts where models are run, often two. The bootstrap draws from
the requests as if they were all that there are, so its standard error is too small by
sqrt((n - 1) / n), and its percentiles take no account of a standard error that is
itself estimated. Of two requests the middle 95 % of the resamples contains the truth
half of the time. Both corrections together give exactly Student's interval where the
number is a mean. Sources: Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
on standard errors and on t intervals made with them; Hesterberg, What Teachers Should
Know About the Bootstrap, The American Statistician 69, 2015, on how much better t
intervals are than percentiles of small samples.

Numbers that are positive by nature, such as speeds, times and their ratios, have their
interval on the scale of logarithms: there a ratio and its inverse are the same news,
and no interval reaches below zero. Differences may be negative, so theirs is linear. It
would be wrong to ask the resamples alone: two prompts whose differences happen to be
positive would then always exclude zero.

Two kinds of number have no such interval. One request tells nothing about others: its
interval is unbounded. And a number whose resamples are all equal (the virtual clock of
a method without chance), or that has none (a printed one, a closed form), is exact.

A number that rests on replays is of a task with so many prompts, of which those that
were replayed are known; and it has a second part, its correction, from few measured
requests (see ``two_phase``). Its half-width is t * error, with the degrees of freedom
of the error. The two parts are independent of each other, so the half-widths' squares
are added.

What the interval does not know: that several claims are judged at once, each again
whenever more was run, until it is settled; that a number was picked for being the
largest; that resamples in which a statistic is undefined are left out; and that a few
prompts may not be typical of their task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, hypot, inf, log, log1p, sqrt
from operator import sub, truediv
from typing import Any, NamedTuple

import numpy as np

from speclab.experiment.spec import present
from speclib.errors import naming_extras

from .bootstrap import Correction, Resamples
from .ledger import Cell
from .spread import Spread

SURE = 0.975  # on either side, which leaves 95 % between
TINY = 1e-12  # resamples that differ by less than this differ by floating point alone


class Interval(NamedTuple):
    """Where the number would be, by 95 % of such intervals, of all requests.

    All are those of the task where it was replayed, and else any.
    """

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A number, and the resamples that tell how sure it is; None: it is exact.

    ``cells``: those of a table that it is computed from, where that was noted.
    """

    value: float
    resamples: Resamples | None = None
    cells: frozenset[Cell] = frozenset()

    @property
    def is_measured_once(self) -> bool:
        """Whether it comes from one request, which settles nothing."""
        return self.resamples is not None and self.resamples.requests == 1

    @property
    def requests(self) -> int | None:
        """How many requests it rests on: of replayed ones, those that were timed."""
        if self.resamples is None:
            return None
        if self.correction is not None:
            return self.correction.measured
        return self.resamples.requests

    @property
    def is_exact(self) -> bool:
        return self.standard_error == 0 and self._error_of_correction == 0

    @cached_property
    def is_positive(self) -> bool:
        """Whether it and all its resamples are, and it cannot be otherwise."""
        if self.value <= 0:
            return False
        if self.resamples is None:
            return True
        return not self.resamples.signed and bool((_defined(self.resamples) > 0).all())

    @property
    def interval(self) -> Interval:
        """The 95 % interval; of one request all numbers, of an exact one itself."""
        if self.is_exact:
            return Interval(self.value, self.value)
        if self.is_measured_once:
            return Interval(-inf, inf)

        half_width = hypot(self.half_width_of_requests, self.half_width_of_correction)
        if not self.is_positive:
            return Interval(self.value - half_width, self.value + half_width)
        with np.errstate(over="ignore"):
            factor = float(np.exp(half_width))
        return Interval(self.value * exp(-half_width), self.value * factor)

    def overlaps(self, other: Estimate) -> bool:
        """Whether both intervals have a number in common."""
        own, others = self.interval, other.interval
        return own.low <= others.high and others.low <= own.high

    def times(self, factor: float) -> Estimate:
        """The number in a unit ``factor`` times as small."""
        if self.resamples is None:
            return replace(self, value=factor * self.value)
        correction = self.resamples.correction
        if correction is not None and not self.is_positive:
            correction = replace(correction, error=abs(factor) * correction.error)
        resamples = replace(
            self.resamples,
            values=factor * self.resamples.values,
            correction=correction,
        )
        return replace(self, value=factor * self.value, resamples=resamples)

    @property
    def correction(self) -> Correction | None:
        """What few measurements leave open; None where it rests on no replays."""
        return None if self.resamples is None else self.resamples.correction

    @property
    def moved(self) -> float:
        """The number if its correction were greater by its standard error."""
        error = self._error_of_correction
        return self.value * exp(error) if self.is_positive else self.value + error

    @property
    def _error_of_correction(self) -> float:
        return 0.0 if self.correction is None else self.correction.error

    @property
    def half_width_of_requests(self) -> float:
        """What few requests leave open, on the scale of the interval."""
        if self.standard_error == 0:
            return 0.0
        return self.standard_error * float(t_factor(self._requests))

    @property
    def half_width_of_correction(self) -> float:
        """What few measured ones leave open about the correction, on the same scale."""
        if self.correction is None or self.correction.error == 0:
            return 0.0
        return self.correction.error * float(t_quantile(self.correction.freedom))

    @property
    def _requests(self) -> int:
        assert self.resamples is not None  # it is not exact
        return self.resamples.requests

    @cached_property
    def standard_error(self) -> float:
        """The bootstrap's standard error, corrected, on the scale of the interval."""
        if self.resamples is None:
            return 0.0
        if self.is_measured_once:
            return inf

        values = _defined(self.resamples)
        size = max(1.0, abs(self.value))
        if self.is_positive:
            values = np.log(values)
            size = 1.0
        deviation = float(values.std())
        if deviation <= TINY * size:
            return 0.0
        return deviation * sqrt(self._requests / (self._requests - 1))

    def distance_to(self, limit: float) -> float:
        """How far the number is from ``limit``, on the scale of the interval."""
        if not self.is_positive:
            return abs(self.value - limit)
        if limit <= 0 or limit == inf:
            return inf
        return abs(log(self.value) - log(limit))


def _defined(resamples: Resamples) -> np.ndarray:
    """The resamples in which the number is defined."""
    defined: np.ndarray = resamples.values[np.isfinite(resamples.values)]
    return defined


def _differ(resamples: Resamples) -> bool:
    """Whether the number is not the same in all resamples."""
    defined = _defined(resamples)
    return len(defined) > 0 and bool(np.ptp(defined) > 0)


def t_factor(n: int | np.ndarray) -> Any:
    """How many standard errors of ``n`` requests reach to the end of the interval."""
    return t_quantile(n - 1)


def t_quantile(freedom: float | np.ndarray) -> Any:
    """What Student's t with so many degrees of freedom exceeds by 1 - SURE.

    SciPy is imported where it is used: printed tables are read without it.
    """
    with naming_extras("an interval"):
        from scipy.special import stdtrit  # scipy.stats takes a second to load

    return stdtrit(freedom, SURE)


def ledger_interval(estimate: Estimate) -> Interval | None:
    """``low`` and ``high`` of the ledger; None where nothing was resampled."""
    if estimate.resamples is None or estimate.is_measured_once:
        return None
    return estimate.interval


# -- numbers that are computed from others ---------------------------------------------
def divide(top: Estimate, bottom: Estimate) -> Estimate:
    """The quotient of two numbers, resample by resample.

    What slowed one request of two methods that were measured in turns, or the plain
    decoding that both stand over, cancels: then the correction of the quotient is
    surer than those of its two sides. A number over itself is 1, whatever its own is.
    """
    if _are_the_same(top, bottom):
        return Estimate(1.0, cells=top.cells | bottom.cells)
    quotient = _combine(truediv, (top, bottom), signed=False)
    spread = _spread_of_quotient(top, bottom)
    if spread is None or not quotient.is_positive or quotient.correction is None:
        return quotient
    measured = quotient.correction.measured
    surer = replace(
        quotient.correction,
        error=sqrt(spread.variance / measured),
        freedom=spread.freedom,
    )
    resamples = replace(present(quotient.resamples), correction=surer)
    return replace(quotient, resamples=resamples)


def _are_the_same(one: Estimate, other: Estimate) -> bool:
    """Whether both are the same number of the same run."""
    first, second = one.correction, other.correction
    if first is None or second is None or first.cell is None or second.cell is None:
        return False
    return one.value == other.value and first.cell.is_the_same_as(second.cell)


def _spread_of_quotient(top: Estimate, bottom: Estimate) -> Spread | None:
    """How much the corrections' quotient differs; None where that is not known."""
    above, below = top.correction, bottom.correction
    if above is None or below is None or above.cell is None or below.cell is None:
        return None
    if not (above.is_factor and below.is_factor):
        return None
    return above.cell.spread_of_quotient(below.cell)


def subtract(one: Estimate, other: Estimate) -> Estimate:
    """The difference of two numbers, resample by resample."""
    return _combine(sub, (one, other), signed=True)


def average(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of numbers, resample by resample."""

    def mean(*values: Any) -> Any:
        return sum(values) / len(values)

    return _combine(mean, estimates, signed=False)


def _combine(
    operation: Callable[..., Any], operands: Sequence[Estimate], signed: bool
) -> Estimate:
    """``operation`` on the numbers, and on their resamples one by one.

    Exact numbers are the same in every resample. Of numbers of requests that differ,
    the smallest says how sure the result is.
    """
    value = float(operation(*[operand.value for operand in operands]))
    cells = frozenset[Cell]().union(*[operand.cells for operand in operands])
    drawn = []
    values: list[float | np.ndarray] = []
    for operand in operands:
        if operand.resamples is None or operand.is_exact:
            values.append(operand.value)
            continue
        drawn.append(operand.resamples)
        values.append(operand.resamples.values)
        signed = signed or operand.resamples.signed

    if not drawn:
        return Estimate(value, cells=cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        combined = operation(*values)
    differing = [r for r in drawn if _differ(r) or r.requests == 1]
    least_sure = min(differing or drawn, key=lambda resamples: resamples.requests)
    resamples = replace(least_sure, values=combined, signed=signed, correction=None)
    estimate = Estimate(value, resamples, cells)
    return _with_correction(estimate, operation, operands)


def _with_correction(
    estimate: Estimate, operation: Callable[..., Any], operands: Sequence[Estimate]
) -> Estimate:
    """``estimate``, with what the corrections of its ``operands`` leave open.

    Each operand in turn is moved by its error; the squares of what the result moves by
    are added. The degrees of freedom are Welch's and Satterthwaite's.
    """
    replayed = [operand for operand in operands if operand.correction is not None]
    corrected = [operand for operand in replayed if operand._error_of_correction]
    drawn = [operand for operand in operands if not operand.is_exact]
    if not corrected and (not replayed or len(drawn) > len(replayed)):
        return estimate

    variances, shares_of_freedom = [], []
    for moved in corrected:
        inputs = [
            operand.moved if operand is moved else operand.value for operand in operands
        ]
        shift = float(operation(*inputs)) - estimate.value
        if estimate.is_positive:
            shift = log1p(max(shift / estimate.value, -1 + TINY))
        variances.append(shift**2)
        shares_of_freedom.append(shift**4 / present(moved.correction).freedom)

    total = sum(variances)
    correction = Correction(
        by=1.0,
        is_factor=estimate.is_positive,
        error=sqrt(total),
        freedom=total**2 / sum(shares_of_freedom) if total else inf,
        measured=min(
            present(operand.correction).measured for operand in corrected or replayed
        ),
    )
    resamples = replace(present(estimate.resamples), correction=correction)
    return replace(estimate, resamples=resamples)
