"""Coins without a fixed value enumerate every outcome of a user's function.

The function calls ``u = coin()`` and then tests ``if u < p[token] / q[token]``. Here
``u`` is not a number but an interval of [0, 1). A comparison cuts it in two, and the
function continues with one of the parts. We call one such run a walk:

    u                [0 ───────────────────────────────── 1)
    u < 0.7 is true  [0 ─────────────────────── 0.7)
    u < 0.2 is false          [0.2 ──────────── 0.7)        length 0.5

We walk through all combinations, and for each result we add up the products of the
interval lengths. The sums are the exact distribution of the function's results. A coin
that is used twice is cut twice, so the effect of a reused coin is exact, too. Sampling,
however extensive, would only estimate the distribution.

The test ``u <= 0`` can succeed: ``u`` = 0 has probability 0, but it is possible. We
walk through this outcome, too, with probability 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import exp, inf, isnan, nextafter
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from speclib.core.sampling import Row
from speclib.errors import BadCall
from speclib.worlds.enumerator import (
    SLIVER,
    WHOLE,
    Interval,
    Intervals,
    check_total_probability,
)

Result = TypeVar("Result")


class NotWalkable(BadCall):
    """A coin was used in a way that makes it impossible to enumerate every outcome."""


class Coin:
    """An unknown number in [0, 1), or a monotonic function of it.

    It can be compared with a number, and a number can be added to it, subtracted from
    it or multiplied with it, or divide it; an array works elementwise. ``np.log``
    works, too. Anything else raises NotWalkable.

    ``at`` is the function's inverse: it maps a value back to the number in [0, 1).
    ``rises``: whether the function increases.
    """

    def __init__(
        self,
        walk: CoinWalk,
        number: int,
        at: Callable[[float], float] = float,
        rises: bool = True,
    ):
        self._walk = walk
        self._number = number
        self._at = at
        self._rises = rises

    # -- comparisons, elementwise for an array -----------------------------------------
    def __lt__(self, other: Any) -> Any:
        return _each(self._is_below, other)

    def __le__(self, other: Any) -> Any:
        return _each(self._is_at_most, other)

    def __gt__(self, other: Any) -> Any:
        return _each(lambda number: not self._is_at_most(number), other)

    def __ge__(self, other: Any) -> Any:
        return _each(lambda number: not self._is_below(number), other)

    def _is_below(self, other: Coin | float) -> bool:
        if other is self:
            return False
        edge = self._at(_number(other))
        if self._rises:
            return self._walk.is_below(self._number, edge)
        return not self._walk.is_at_most(self._number, edge)

    def _is_at_most(self, other: Coin | float) -> bool:
        if other is self:
            return True
        edge = self._at(_number(other))
        if self._rises:
            return self._walk.is_at_most(self._number, edge)
        return not self._walk.is_below(self._number, edge)

    # -- arithmetic --------------------------------------------------------------------
    def __add__(self, other: Any) -> Any:
        return _each(self._plus, other)

    def __sub__(self, other: Any) -> Any:
        return _each(lambda number: self._plus(-_number(number)), other)

    def __neg__(self) -> Coin:
        return self._times(-1.0)

    def __rsub__(self, other: Any) -> Any:
        return _each((-self)._plus, other)

    def __mul__(self, other: Any) -> Any:
        return _each(self._times, other)

    def __truediv__(self, other: Any) -> Any:
        return _each(lambda number: self._times(1 / _number(number)), other)

    __radd__ = __add__
    __rmul__ = __mul__

    def _plus(self, other: float) -> Coin:
        summand = _number(other)
        return self._changed(lambda value: value - summand)

    def _times(self, other: float) -> Coin:
        factor = _number(other)
        if factor == 0:
            raise NotWalkable("a coin times 0 is always 0: what should it decide?")
        return self._changed(lambda value: value / factor, turns=factor < 0)

    def logarithm(self) -> Coin:
        """The natural logarithm, for ``np.log``."""
        return self._changed(_exponential)

    def _changed(self, before: Callable[[float], float], turns: bool = False) -> Coin:
        """A function of this coin; ``before`` is the inverse of that function."""
        at = self._at
        return Coin(
            self._walk,
            self._number,
            at=lambda value: at(before(value)),
            rises=self._rises != turns,
        )

    # -- numpy -------------------------------------------------------------------------
    def __array_ufunc__(
        self, function: np.ufunc, method: str, *inputs: object, **_: object
    ) -> object:
        """Applies a numpy function to a coin, or raises NotWalkable."""
        if method == "__call__" and function is np.log:
            return self.logarithm()
        if method == "__call__" and function in OPERATORS:
            one, *others = [_plain(value) for value in inputs]
            if not others:
                return OPERATORS[function](one)
            if isinstance(one, Coin):
                return OPERATORS[function](one, *others)
            (coin,) = others
            return _each(lambda number: OPERATORS[function](number, coin), one)
        raise NotWalkable(
            f"np.{function.__name__} does not work on a coin. {USE_OF_A_COIN}"
        )

    def __float__(self) -> float:
        raise NotWalkable(f"the number of a coin is hidden here. {USE_OF_A_COIN}")

    def _cannot(self, *_: object) -> NoReturn:
        raise NotWalkable(
            f"this does not work on a coin, whose number is hidden. {USE_OF_A_COIN}"
        )

    __int__ = __index__ = __float__
    __pow__ = __rpow__ = __mod__ = __rmod__ = __rtruediv__ = _cannot
    __floordiv__ = __rfloordiv__ = __abs__ = __round__ = __bool__ = _cannot
    __hash__ = None  # type: ignore[assignment]


NewCoin: TypeAlias = Callable[[], Coin]

USE_OF_A_COIN = (
    "Every outcome is tried, so compare it with a number, as in `coin() < 0.7`, if "
    "necessary after addition, multiplication or np.log; or use `draw(row, coin())`."
)

# A pass with a few draft tokens needs fewer. Each coin multiplies the number of walks.
MOST_COINS = 32

OPERATORS: dict[np.ufunc, Callable[..., object]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.negative: operator.neg,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}


def _plain(value: object) -> object:
    """A numpy scalar as a Python number; anything else unchanged."""
    if isinstance(value, np.generic | np.ndarray) and value.size == 1:
        return value.item()
    return value


def _exponential(value: float) -> float:
    """e to the power of ``value``, capped so that the result fits in a float."""
    return exp(min(value, LARGEST_POWER))


LARGEST_POWER = 700.0  # e to this power still fits in a float


def _number(value: object) -> float:
    """``value`` as a float. Raises NotWalkable for a coin, BadCall for NaN."""
    if isinstance(value, Coin):
        raise NotWalkable(
            "two coins meet in a comparison or in arithmetic: compare each separately"
        )
    number = float(value)  # type: ignore[arg-type]
    if isnan(number):
        raise BadCall(
            "a coin meets NaN: does a row or a probability come from 0 / 0? (The "
            "residual does if p and q are equal. Are both for the same position?)"
        )
    return number


def _each(compute: Callable[[Any], Any], other: Any) -> Any:
    """Applies ``compute`` to a number, or to each number in an array.

    PyTorch tensors, and anything else that numpy can read, become numpy arrays.
    """
    if not getattr(other, "ndim", 0):
        return compute(_plain(other))
    numbers = np.asarray(other)
    results = [compute(number) for number in numbers.flat]
    return np.array(results).reshape(numbers.shape)


def draw(row: Row, u: Coin | float) -> int:
    """The token of ``row`` [V] that the number ``u`` in [0, 1) picks.

    >>> speclib.draw([0.5, 0.25, 0.25], 0.6)
    1

    This is the first token at which the cumulative probability exceeds ``u``, or the
    last token if the whole row sums to less. ``draw`` does not normalise ``row``: if
    its sum is not 1, tokens are not drawn with its probabilities.
    """
    total = 0.0
    for token, probability in enumerate(row):
        total += float(probability)
        if u < total:
            return token
    return len(row) - 1


class CoinWalk(Intervals):
    """One walk: the function's coins, and the remaining interval of each."""

    def coin(self) -> Coin:
        """A new coin. Raises NotWalkable if there are ``MOST_COINS`` already."""
        number = len(self.held)
        if number == MOST_COINS:
            raise NotWalkable(
                f"more than {MOST_COINS} coins for one pass. Every outcome of each is "
                "tried, so a loop must not toss coins until something happens: "
                "`draw(row, coin())` needs only one coin."
            )
        self.held[_key(number)] = WHOLE
        return Coin(self, number)

    def is_below(self, number: int, edge: float) -> bool:
        """Whether a coin is below ``edge``, in this walk."""
        held = self.held[_key(number)]
        if _is_point(held):
            return held.low < edge
        below = Interval(held.low, min(held.high, edge))
        others = Interval(max(held.low, edge), held.high)
        return self._take_one_of(number, below, others)

    def is_at_most(self, number: int, edge: float) -> bool:
        """Whether a coin is at most ``edge``, in this walk.

        The coin can equal the lowest number in its interval.
        """
        held = self.held[_key(number)]
        if held.low != edge:
            return self.is_below(number, edge)
        if _is_point(held):
            return True
        at_edge = Interval(edge, edge)
        above = Interval(nextafter(edge, inf), held.high)
        return bool(self.take(_key(number), [(True, at_edge), (False, above)]))

    def _take_one_of(self, number: int, below: Interval, others: Interval) -> bool:
        halves = []
        for is_below, part in ((True, below), (False, others)):
            if part.length > SLIVER:
                halves.append((is_below, part))
        return bool(self.take(_key(number), halves))


def _key(number: int) -> tuple[int, str, int]:
    """A coin's key in a walk."""
    return (0, "coin", number)


def _is_point(interval: Interval) -> bool:
    return interval.low == interval.high


def all_outcomes(
    run: Callable[[Callable[[], Coin]], Result],
) -> dict[Result, float]:
    """The results of ``run(coin)`` with their probabilities, for all coins' values.

    ``coin()`` returns a new coin. Results must be hashable. Raises NotRepeatable if
    ``run`` behaves differently from call to call.
    """
    probabilities: dict[Result, float] = {}
    path: list[int] | None = []
    while path is not None:
        walk = CoinWalk(path)
        result = run(walk.coin)
        probabilities[result] = probabilities.get(result, 0.0) + walk.mass
        path = walk.following()
    check_total_probability(probabilities.values())
    return probabilities
