"""c = t_target / t_draft: how it is read from passes, and how sure it is.

In a trial all devices work at once, as they do under a parallel method: each target
makes one pass, while the draft makes as many as fit beside it. A trial's ratio is the
seconds of its target pass over those of one of its draft passes. c is the median of the
trials' ratios. A machine that slows down for a while slows both sides of the same
trials, and a few disturbed trials do not move a median.

The interval lies between two of the sorted ratios. Each ratio is above the true median
or below it with the same chance, so that the binomial distribution says between which
two the median lies; nothing is assumed of how the durations are distributed.

Trials go on until the interval settles round(c). We look after 8, 16, ... trials, and
an interval that is judged six times misses more often than once. So each look has a
sixth of the 5 % that the interval may miss in all (Bonferroni).

What it does not know: whether somebody else keeps one of the cores busy all the while.
Then every trial is disturbed in the same way, and the interval is narrow about a wrong
value. Trials that follow each other on a busy machine are not independent either, and
their interval is too narrow. What is measured there is not kept (see ``kept_ratios``).

Knows no process, no model and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from typing import NamedTuple

from speclib.core.counts import nearest_count

MAY_MISS = 0.05
LOOKS = (8, 16, 32, 64, 128, 256)  # after so many trials the interval is judged

# A burst of other work may last as long as a few passes: what is settled sooner than
# this is judged again. The next look doubles the time; none is begun that would end
# after the limit.
LEAST_SECONDS = 1.0
MOST_SECONDS = 10.0

# A few trials do not count, of which the first one prefills. They say how many tokens
# the draft writes beside a target pass in those that do.
UNCOUNTED_TRIALS = 4
DRAFTED_AT_FIRST = 4
DRAFTED_AT_MOST = 32

NARROW = 0.1  # of c: an interval this wide comes from a machine that was left alone


class Trial(NamedTuple):
    """Seconds of one target pass, and of one draft pass beside it."""

    target: float
    draft: float


@dataclass(frozen=True)
class CostRatio:
    """c, and between which values it lies with a chance of 95 %.

    ``trials``: how many it was read from; 0 where it is known and not measured.
    ``target_seconds``: of one target pass, their median.
    """

    value: float
    low: float
    high: float
    trials: int = 0
    target_seconds: float = 1.0

    @classmethod
    def known(cls, c: float) -> CostRatio:
        """The ratio of a clock whose durations are given."""
        return cls(value=c, low=c, high=c)

    @property
    def is_settled(self) -> bool:
        """Whether every value of the interval rounds to the same draft length."""
        return nearest_count(self.low) == nearest_count(self.high)

    @property
    def is_worth_keeping(self) -> bool:
        """Whether later runs may go by it: it is settled, or at least narrow.

        A c of 5.5 is never settled, however well it is known.
        """
        return self.is_settled or self.width <= NARROW

    @property
    def width(self) -> float:
        """How wide the interval is, as a share of the value."""
        return (self.high - self.low) / self.value

    def __str__(self) -> str:
        text = f"c = {self.value:.3g}"
        if self.trials:
            text += f" (95 %: {self.low:.3g} .. {self.high:.3g})"
        if not self.is_settled:
            text += ", round(c) is not settled"
        return text


# -- measuring -------------------------------------------------------------------------
def fitting_drafts(take_trial: Callable[[int], Trial]) -> int:
    """As many drafts as fit beside a target pass: then both sides work all the time.

    take_trial: makes a target pass beside so many passes of the draft.
    """
    uncounted = []
    for _ in range(UNCOUNTED_TRIALS):
        uncounted.append(take_trial(DRAFTED_AT_FIRST))
    estimate = read(uncounted[1:])
    return min(nearest_count(estimate.value), DRAFTED_AT_MOST)


def measure(take_trial: Callable[[], Trial], now: Callable[[], float]) -> CostRatio:
    """Takes trials until round(c) is settled, or until the limits above.

    ``now``: seconds since the measurement began.
    """
    trials: list[Trial] = []
    for look in LOOKS:
        while len(trials) < look:
            trials.append(take_trial())
        ratio = read(trials)

        seconds_so_far = now()
        if ratio.is_settled and seconds_so_far >= LEAST_SECONDS:
            break
        if 2 * seconds_so_far > MOST_SECONDS:
            break
    return ratio


def read(trials: Sequence[Trial]) -> CostRatio:
    """The ratio that ``trials`` show, with the interval of one of several looks."""
    ratios = sorted(trial.target / trial.draft for trial in trials)
    outer = median_rank(len(ratios), MAY_MISS / len(LOOKS))
    return CostRatio(
        value=median(ratios),
        low=ratios[outer],
        high=ratios[-1 - outer],
        trials=len(ratios),
        target_seconds=median(trial.target for trial in trials),
    )


def median_rank(count: int, may_miss: float) -> int:
    """How many sorted values may be left out at each end, and the true median still
    lies between the others with a chance of 1 - ``may_miss``.

    With k left out at each end it is missed if at most k of ``count`` values are on one
    side of it: twice the chance of at most k heads in ``count`` tosses.
    """
    left_out = 0
    at_most = comb(count, 0) + comb(count, 1)  # of the 2 ** count outcomes
    while 2 * at_most <= may_miss * 2**count:
        left_out += 1
        at_most += comb(count, left_out + 1)
    return left_out
