"""Does a number lie in a range? What its interval settles, and what it leaves open.

A 95 % interval that lies inside the range answers yes, one that lies outside answers
no, and one that reaches across a limit leaves the question open::

    limits of the claim       |-------------|
    yes                          |---o--|
    no                                        |-o--|
    open                                |---o----|

Whether one number is above another is a question about their quotient, and 1 is its
limit. Two numbers may be as good as equal, and then no run ever leaves 1 out. So there
is a fourth answer, a tie: the interval contains 1, and ends before the quotient would
make a difference (see ``tie_limits``)::

    1 and a tie's limits         |-----:-----|
    yes                                  |-o---|
    tie                             |--o---|
    open                              |----o----|
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt

from .estimates import Estimate
from .reach import Reach
from .verdict import Answer

TIE = 1.05  # two numbers whose quotient is nearer to 1 than this differ by too little


@dataclass(frozen=True)
class Finding:
    """The answer to one question, as far as the interval of its number settles it.

    ``seems`` is what the number alone says; ``limits`` are those of the range.
    Between ``limits_of_tie`` the number says that two others are as good as equal;
    empty where the question is none of two numbers.
    """

    answer: Answer
    seems: bool
    estimate: Estimate
    limits: tuple[float, ...]
    limits_of_tie: tuple[float, ...] = ()

    @property
    def would_be_no(self) -> bool:
        """Whether an open question would be answered no, if the number stayed."""
        would_be_tie = self._nearest_limits != self.limits
        return not self.seems and not would_be_tie

    @property
    def requests_needed(self) -> int | None:
        """How many requests would settle an open question; None: too many to count."""
        return most_of([reach.requests_needed for reach in self._reaches])

    @property
    def requests_at_last(self) -> int | None:
        """The same, once as many are replayed as there can be."""
        return most_of([reach.requests_at_last for reach in self._reaches])

    @property
    def lacks_replays(self) -> bool:
        """Whether more replays would help to settle an open question."""
        return any(reach.lacks_replays for reach in self._reaches)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether an open question will stay open, however much is run."""
        return any(reach.is_impossible for reach in self._reaches)

    @property
    def _reaches(self) -> list[Reach]:
        return [Reach(self.estimate, limit) for limit in self._nearest_limits]

    @cached_property
    def _nearest_limits(self) -> tuple[float, ...]:
        """The limits that an interval leaves out first as it becomes narrower."""
        if not self.limits_of_tie:
            return self.limits
        low, high = self.limits_of_tie
        if not low < self.estimate.value < high:
            return self.limits
        room_for_tie = self._distance_to(self.limits_of_tie)
        room_for_order = self._distance_to(self.limits)
        return self.limits_of_tie if room_for_tie > room_for_order else self.limits

    def _distance_to(self, limits: tuple[float, ...]) -> float:
        """How far the number is from the nearest of ``limits``."""
        return min(self.estimate.distance_to(limit) for limit in limits)


def most_of(counts: Sequence[int | None]) -> int | None:
    """The largest; None if one of them is not known."""
    known = [count for count in counts if count is not None]
    return max(known, default=0) if len(known) == len(counts) else None


def settle_within(estimate: Estimate, low: float, high: float) -> Finding:
    """Whether the number lies in low .. high, the ends included."""
    interval = estimate.interval
    answer: Answer = "open"
    if low <= interval.low and interval.high <= high:
        answer = "yes"
    elif interval.high < low or interval.low > high:
        answer = "no"
    seems = low <= estimate.value <= high
    return Finding(answer, seems, estimate, (low, high))


def settle_above(
    estimate: Estimate, limit: float, limits_of_tie: tuple[float, ...] = ()
) -> Finding:
    """Whether the number is above ``limit``; an exact one that equals it is not."""
    interval = estimate.interval
    answer: Answer = "open"
    if interval.low > limit:
        answer = "yes"
    elif interval.high <= limit:
        answer = "no"
    seems = estimate.value > limit
    finding = Finding(answer, seems, estimate, (limit,), limits_of_tie)
    return _or_tie(finding)


def settle_not_below(
    estimate: Estimate, limit: float, limits_of_tie: tuple[float, ...] = ()
) -> Finding:
    """Whether the number is at least ``limit``; an exact one that equals it is."""
    finding = settle_within(estimate, limit, inf)
    return _or_tie(replace(finding, limits_of_tie=limits_of_tie))


def _or_tie(finding: Finding) -> Finding:
    """A tie if it is open and its interval lies between the limits of one."""
    if finding.answer != "open" or not finding.limits_of_tie:
        return finding
    interval = finding.estimate.interval
    low, high = finding.limits_of_tie
    is_tie = low < interval.low and interval.high < high
    return replace(finding, answer="tie") if is_tie else finding


def tie_limits(printed_quotient: float | None, are_shares: bool) -> tuple[float, float]:
    """Between which limits a quotient of two numbers says that they are a tie.

    Within 1.05 either way, or within half of what the paper prints if that is less, on
    the scale of logarithms: a difference of 4 % in print may not be called a tie for
    being under 5 %. Where it prints equal numbers, ours may be a tie as if it printed
    none.

    ``are_shares``: both are parts of 1, such as acceptance rates. Of these 0.99 and
    0.95 differ by 4 %, and what is rejected by a factor of five. So only the print says
    what is little, and without it they are never a tie.
    """
    if printed_quotient is None or printed_quotient == 1:
        factor = 1.0 if are_shares else TIE
    else:
        half_of_print = sqrt(max(printed_quotient, 1 / printed_quotient))
        factor = min(TIE, half_of_print)
    return 1 / factor, factor
