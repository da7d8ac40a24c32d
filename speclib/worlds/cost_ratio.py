"""c = t_target / t_draft, measured with a small, fixed number of passes.

In a trial, all devices work at once, as they do under a parallel method: each target
makes one pass, while the draft makes as many as fit into the same time. A trial's ratio
is the time of its target pass divided by the time of one draft pass. c is the median of
the ratios. If the machine slows down for a while, it slows both sides of the same
trials, and a single disturbed trial does not move the median.

The smallest and largest ratios show how certain c is. Each ratio is equally likely to
be above or below the true median, so all six are on the same side of it with
probability 2 / 2**6 = 3 %.

If another program keeps one of the cores busy all the time, the trials cannot detect
it, since it disturbs all of them in the same way.

This module does not depend on processes or models.
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
    """How long a target pass and a simultaneous draft pass took, in seconds."""

    target: float
    draft: float

    @property
    def ratio(self) -> float:
        """The number of draft passes that take as long as the target pass."""
        return self.target / self.draft


@dataclass(frozen=True)
class CostRatio:
    """c, and the smallest and largest ratios of its trials.

    ``trials``: their number; 0 if c was given, not measured. ``target_seconds``: the
    median time of a target pass.
    """

    value: float
    low: float
    high: float
    trials: int = 0
    target_seconds: float = 1.0

    @classmethod
    def known(cls, c: float) -> CostRatio:
        """Makes the CostRatio for a clock with given durations."""
        return cls(value=c, low=c, high=c)

    def __str__(self) -> str:
        text = f"c = {self.value:.3g}"
        if self.trials:
            text += f" ({self.trials} trials: {self.low:.3g} .. {self.high:.3g})"
        return text


def measure(take_trial: Callable[[int], Trial]) -> CostRatio:
    """Measures c with a few trials.

    The first trial prefills and warms up. The second one shows how many drafts fit into
    a target pass, so that both sides are busy throughout the trials that count.

    take_trial: makes one target pass and, at the same time, the given number of draft
    passes.
    """
    take_trial(DRAFTED_AT_FIRST)
    fitting = round(take_trial(DRAFTED_AT_FIRST).ratio)
    drafted = min(max(1, fitting), DRAFTED_AT_MOST)
    return read([take_trial(drafted) for _ in range(TRIALS)])


def read(trials: Sequence[Trial]) -> CostRatio:
    """Computes c from the ratios of ``trials``."""
    ratios = [trial.ratio for trial in trials]
    return CostRatio(
        value=median(ratios),
        low=min(ratios),
        high=max(ratios),
        trials=len(ratios),
        target_seconds=median(trial.target for trial in trials),
    )
