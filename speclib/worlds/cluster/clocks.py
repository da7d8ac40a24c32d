"""Clocks of several machines, laid on one axis.

A monotonic clock counts from the start of its machine, so the clocks of two machines
differ by any number of seconds. A round trip tells by how many: what the other clock
read lies between our readings before and after. The shorter the trip, the surer::

    ours     before ------------------- after
                     \\              /
    theirs            --- reading ---

    offset = reading - (before + after) / 2,  at most (after - before) / 2 off

Clocks also run at slightly different speeds, so a reading becomes less sure as it ages.

Source: Cristian 1989, "Probabilistic clock synchronization", section 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

DRIFT = 1e-4  # seconds per second, at most, between two machines' quartzes


class Reading(NamedTuple):
    """How far another clock is ahead of ours.

    ``offset``: seconds. ``error``: how far off that may be, either way, when it was
    read. ``taken``: when that was, by our clock.
    """

    offset: float
    error: float
    taken: float

    def error_at(self, now: float) -> float:
        """How far off it may be by now."""
        return self.error + DRIFT * (now - self.taken)


def read(
    other: Callable[[], float], now: Callable[[], float] = time.perf_counter
) -> Reading:
    """One round trip; ``other()`` returns what the other reads, ``now()`` ours."""
    before = now()
    reading = other()
    after = now()
    return Reading(reading - (before + after) / 2, (after - before) / 2, after)


def surer(known: Reading | None, new: Reading) -> Reading:
    """The one of two readings that is surer when ``new`` was taken."""
    if known is None or new.error < known.error_at(new.taken):
        return new
    return known
