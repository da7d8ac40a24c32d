"""Numbers with their 95 % intervals, all computed in the same way.

A number from n requests is computed once from all of them, and once without each of
them. The spread of these n values shows how certain the number is (the jackknife). Let
x be the number and x_i its value without request i, both as logarithms if the number is
positive by nature::

    variance    = (n - 1) / n * sum of (x_i - x) ** 2
    half-width  = t(0.975, n - 1) * sqrt(variance)

For a mean, this is exactly Student's t interval. A speed-up over plain decoding is the
geometric mean over prompts, so its interval is the paired t interval on the logarithms.
The quotient of two numbers leaves out request i on both sides, so an effect that a
prompt has on both cancels.

By hand: speed-ups of 2, 4 and 8 on three prompts. Their geometric mean is 4. The
logarithms are 0.693, 1.386, 2.079, with standard deviation 0.693, so the standard error
is 0.693 / sqrt(3) = 0.400, t(0.975, 2) is 4.303, and the interval is
4 * exp(-1.722) .. 4 * exp(1.722) = 0.715 .. 22.4.

One request says nothing about others, so its interval is unbounded. A number is exact
if it has no requests (a printed number, a closed form), or if it stays the same
whichever request is left out.

The interval does not account for several claims being judged at once, for a number
picked because it is the largest, for a few prompts that are not typical of their task,
or for what another day or another machine would give.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, inf, isfinite, log, sqrt
from operator import sub, truediv
from typing import NamedTuple

from speclib.errors import naming_extras

SURE = 0.975  # on either side, which leaves 95 % in between
TINY = 1e-8  # numbers closer than this differ only by rounding


class Interval(NamedTuple):
    """A 95 % confidence interval for the number over all possible requests."""

    low: float
    high: float


@dataclass(frozen=True)
class Number:
    """A number, and its values without each of its requests, by the request's label.

    n         requests of the operand that has the fewest; 0 if the number is exact
    signed    whether it is a difference, which may be negative
    is_busy   whether it comes from runs during which other programs were busy
    """

    value: float
    without: Mapping[str, float] = field(default_factory=dict)
    n: int = 0
    signed: bool = False
    is_busy: bool = False

    @property
    def is_exact(self) -> bool:
        return self.n != 1 and self._error == 0

    @cached_property
    def is_positive(self) -> bool:
        """Whether it is positive by nature, with and without each request."""
        known = [x for x in self.without.values() if isfinite(x)]
        return not self.signed and self.value > 0 and all(x > 0 for x in known)

    @cached_property
    def interval(self) -> Interval:
        """The 95 % interval: unbounded for one request, a point for an exact number."""
        if self.n == 1:
            return Interval(-inf, inf)
        if self._error == 0:
            return Interval(self.value, self.value)
        half_width = t_quantile(self.n - 1) * self._error
        if not self.is_positive:
            return Interval(self.value - half_width, self.value + half_width)
        high = self.value * exp(half_width) if half_width < 700 else inf
        return Interval(self.value * exp(-half_width), high)

    @cached_property
    def _error(self) -> float:
        """The standard error, on the interval's scale."""
        known = [x for x in self.without.values() if isfinite(x)]
        scale: Callable[[float], float] = log if self.is_positive else float
        if len(known) < 2 or not isfinite(self.value):
            return 0.0
        distances = [scale(x) - scale(self.value) for x in known]
        size = 1.0 if self.is_positive else max(1.0, abs(self.value))
        if max(map(abs, distances)) <= TINY * size:
            return 0.0
        count = len(known)
        return sqrt((count - 1) / count * sum(d * d for d in distances))

    def times(self, factor: float) -> Number:
        """The number in a unit that is smaller by ``factor``."""
        return combine(lambda value: factor * value, [self], signed=self.signed)


def t_quantile(freedom: float) -> float:
    """The SURE quantile of Student's t with ``freedom`` degrees of freedom."""
    with naming_extras("an interval"):
        from scipy.special import stdtrit  # scipy.stats takes a second to load

    return float(stdtrit(freedom, SURE))


def mean_number(values: Sequence[float]) -> Number:
    """The mean of values, one from each request."""
    count, total = len(values), sum(values)
    without = {
        str(nth): float((total - value) / (count - 1)) if count > 1 else float("nan")
        for nth, value in enumerate(values)
    }
    return Number(float(total / count), without, n=count)


def divide(top: Number, bottom: Number) -> Number:
    return combine(truediv, [top, bottom])


def subtract(one: Number, other: Number) -> Number:
    return combine(sub, [one, other], signed=True)


def average(numbers: Sequence[Number]) -> Number:
    """The mean of numbers."""
    return combine(lambda *values: sum(values) / len(values), numbers)


def combine(
    operation: Callable[..., float], numbers: Sequence[Number], signed: bool = False
) -> Number:
    """Applies ``operation`` to the numbers, and to their values without each request.

    If a number does not depend on the omitted request, its full value is used.
    """
    labels = dict.fromkeys(label for number in numbers for label in number.without)
    without = {}
    for label in labels:
        values = [number.without.get(label, number.value) for number in numbers]
        without[label] = _or_nan(operation, values)
    counts = [number.n for number in numbers if not number.is_exact]
    return Number(
        value=_or_nan(operation, [number.value for number in numbers]),
        without=without,
        n=min(counts, default=0),
        signed=signed or any(number.signed for number in numbers),
        is_busy=any(number.is_busy for number in numbers),
    )


def _or_nan(operation: Callable[..., float], values: Sequence[float]) -> float:
    try:
        return operation(*values)
    except ZeroDivisionError:
        return float("nan")
