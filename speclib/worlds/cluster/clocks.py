"""Puts the clocks of several machines on one axis.

A monotonic clock counts from the start of its machine, so the clocks of two machines
may differ by any amount. A round trip measures the difference: the other clock is read
between two readings of ours. The shorter the trip, the more certain the result::

    ours     before ------------------- after
                     \\              /
    theirs            --- reading ---

    offset = reading - (before + after) / 2,  at most (after - before) / 2 off

Clocks also run at slightly different speeds, so a reading becomes less certain with
age.

Source: Cristian 1989, "Probabilistic clock synchronization", section 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

DRIFT = 1e-4  # seconds per second, at most, between two machines' clocks


class Reading(NamedTuple):
    """A reading of how far another clock is ahead of ours.

    ``offset``: seconds. ``error``: how far off it may be, either way, when it was read.
    ``taken``: when it was read, by our clock.
    """

    offset: float
    error: float
    taken: float

    def error_at(self, now: float) -> float:
        """The most seconds that the reading may be off at ``now``."""
        return self.error + DRIFT * (now - self.taken)


def read(
    other: Callable[[], float], now: Callable[[], float] = time.perf_counter
) -> Reading:
    """Makes one round trip; ``other()`` reads the other clock, ``now()`` ours."""
    before = now()
    reading = other()
    after = now()
    return Reading(reading - (before + after) / 2, (after - before) / 2, after)


def surer(known: Reading | None, new: Reading) -> Reading:
    """The reading with the smaller error at the time of ``new``."""
    if known is None or new.error < known.error_at(new.taken):
        return new
    return known
