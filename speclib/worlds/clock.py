"""The time of a worker: what its clock reads, and how it waits.

A worker takes its clock as an argument, as every world has one. So what it does at
which time can be tried on a clock that does not run by itself.
"""

from __future__ import annotations

import select
import time
from multiprocessing.connection import Connection
from typing import Protocol


class Clock(Protocol):
    """Reads seconds, and lets them pass."""

    def now(self) -> float:
        """Seconds since some moment that is always the same."""
        ...

    def wait(self, pipe: Connection, seconds: float) -> bool:
        """Waits until something comes through ``pipe``, at most so many ``seconds``.

        Returns whether something has come.
        """
        ...


class SystemClock:
    """The machine's own monotonic clock, which all its processes share."""

    def now(self) -> float:
        return time.perf_counter()

    def wait(self, pipe: Connection, seconds: float) -> bool:
        # select counts in microseconds; the pipe's own poll rounds up to milliseconds
        ready, _, _ = select.select([pipe], [], [], max(0.0, seconds))
        return bool(ready)
