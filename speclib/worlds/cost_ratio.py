"""c = t_target / t_draft, timed by a fixed handful of passes.

In a trial all devices work at once, as they do under a parallel method: each target
makes one pass, while the draft makes as many as take equally long. A trial's ratio is
the seconds of its target pass over the seconds of one of its draft passes. c is the
median of the trials' ratios: a machine that slows down for a while slows both sides of
the same trials, and one disturbed trial does not move a median.

The smallest and the largest ratio say how sure c is. Each ratio is above the true
median or below it with the same chance, so six of them miss it, all on one side, with
a chance of 2 / 2**6 = 3 %.

What it does not know: whether another program keeps one of the cores busy all the time.
Every trial is then disturbed in the same way.

Knows no process and no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

TRIALS = 6
DRAFTED_AT_FIRST = 4  # in the two trials that do not count
DRAFTED_AT_MOST = 32


class Trial(NamedTuple):
    """Seconds of one target pass, and of one draft pass at the same time."""

    target: float
    draft: float

    @property
    def ratio(self) -> float:
        """How many draft passes last as long as the target's."""
        return self.target / self.draft


@dataclass(frozen=True)
class CostRatio:
    """c, and the smallest and largest ratio of the trials that it is the median of.

    ``trials``: how many there were; 0 if c is known and not timed.
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

    def __str__(self) -> str:
        text = f"c = {self.value:.3g}"
        if self.trials:
            text += f" ({self.trials} trials: {self.low:.3g} .. {self.high:.3g})"
        return text


def measure(take_trial: Callable[[int], Trial]) -> CostRatio:
    """c of a few trials that are taken now.

    The first one prefills and warms up. The second one says how many drafts fit beside
    a target pass, so that both sides work all the time in those that count.

    take_trial: makes a target pass and, at the same time, that many draft passes.
    """
    take_trial(DRAFTED_AT_FIRST)
    fitting = round(take_trial(DRAFTED_AT_FIRST).ratio)
    drafted = min(max(1, fitting), DRAFTED_AT_MOST)
    return read([take_trial(drafted) for _ in range(TRIALS)])


def read(trials: Sequence[Trial]) -> CostRatio:
    """The ratio that ``trials`` show."""
    ratios = [trial.ratio for trial in trials]
    return CostRatio(
        value=median(ratios),
        low=min(ratios),
        high=max(ratios),
        trials=len(ratios),
        target_seconds=median(trial.target for trial in trials),
    )
