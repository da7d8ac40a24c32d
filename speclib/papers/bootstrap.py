"""95 % intervals from bootstrap resamples of requests or texts.

Resamples are seeded and depend on the number of requests alone: for two cells of as
many requests, resample i draws the same ones. So the resamples of two cells may be
compared one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

RESAMPLES = 1000


class Interval(NamedTuple):
    """The middle 95 % of resamples."""

    low: float
    high: float


def draw_resamples(n: int) -> np.ndarray:
    """How often each of ``n`` requests is drawn in each resample, [RESAMPLES, n]."""
    rng = np.random.default_rng(0)
    return rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)


def interval(samples: np.ndarray | None) -> Interval | None:
    """The middle 95 % of ``samples``; None where there are none."""
    if samples is None:
        return None
    low, high = np.nanpercentile(samples, [2.5, 97.5])
    return Interval(float(low), float(high))
