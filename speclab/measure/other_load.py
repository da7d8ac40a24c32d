"""Measures how busy other programs keep the machine while a cell runs.

A measured or emulated time is only meaningful if no other program used the same cores.
So during every timed request we measure

    others = (CPU seconds of all programs - our CPU seconds) / (seconds x cores)

This share is 0 on a machine that is otherwise idle, and 1 if other programs use all
cores. Time that a virtual machine's host takes ("steal") counts as used by others. The
use of GPUs is not measured.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

# The system's clocks tick every 10 ms, which is too coarse for shorter times.
SHORTEST_SECONDS = 0.1

# Not counted as work: idle times, and guest time, which user time already includes.
NOT_WORK = {"idle", "iowait", "guest", "guest_nice"}


@dataclass(frozen=True)
class Reading:
    """Three clocks at one moment, in seconds: wall time, and the CPU time used so far.

    ``everybody``: CPU time of all programs. ``own``: our own.
    """

    wall: float
    everybody: float
    own: float


def read_clocks() -> Reading:
    """Reads the clocks; our CPU time covers this process and all that it started."""
    return Reading(
        wall=time.monotonic(), everybody=_work_of_all_programs(), own=_own_work()
    )


def others_since(start: Reading) -> float:
    """The share of the machine that others have used since ``start``, from 0 to 1.

    It is 0 if less than ``SHORTEST_SECONDS`` has passed.
    """
    return others_between(start, read_clocks())


def others_between(start: Reading, end: Reading) -> float:
    """The share that others used between two readings (see ``others_since``)."""
    seconds = end.wall - start.wall
    if seconds < SHORTEST_SECONDS:
        return 0.0
    of_others = (end.everybody - start.everybody) - (end.own - start.own)
    share = of_others / (seconds * len(_our_cores()))
    return round(min(1.0, max(0.0, share)), 4)


def _work_of_all_programs() -> float:
    """How long our cores have worked for any program or were taken by the host."""
    import psutil  # missing in a browser, where nothing is measured

    per_core = psutil.cpu_times(percpu=True)
    seconds = 0.0
    for core in _our_cores():
        if core >= len(per_core):
            continue
        for name, spent in per_core[core]._asdict().items():
            if name not in NOT_WORK:
                seconds += spent
    return seconds


def _our_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _own_work() -> float:
    """CPU seconds of this process and its descendants, including ended ones."""
    import psutil

    this_process = psutil.Process()
    seconds = 0.0
    for process in [this_process, *this_process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = process.cpu_times()
            seconds += times.user + times.system
            seconds += times.children_user + times.children_system
    return seconds
