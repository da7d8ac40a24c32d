"""Bootstrap resamples of requests or texts: what a number would be of other ones.

Resamples are seeded by the number of requests and depend on nothing else. So there are
two cases where two numbers are compared resample by resample:

- of as many requests: resample i of both draws the same ones, they are paired;
- of another number of requests: they are drawn independently of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RESAMPLES = 1000


@dataclass(frozen=True)
class Resamples:
    """A number as it comes out in each resample, ``values`` [RESAMPLES].

    ``requests`` is how many requests each resample draws. ``signed`` says that the
    number may be negative, as a difference may, even if none of ``values`` is.
    """

    values: np.ndarray
    requests: int
    signed: bool = False


def draw_resamples(n: int) -> np.ndarray:
    """How often each of ``n`` requests is drawn in each resample, [RESAMPLES, n]."""
    rng = np.random.default_rng(n)
    return rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)


def measured_once(value: float) -> Resamples:
    """The resamples of a number of one request, which are all the same."""
    return Resamples(np.full(RESAMPLES, value), requests=1)
