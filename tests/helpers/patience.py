"""Tests wait for an event or a condition, never for a number of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from speclab import machine_facts

# Seconds, more than any immediate action takes on the busiest machine.
HANG = 60.0

LOOK_EVERY = 0.001  # seconds between checks of a condition


def wait_until(is_so: Callable[[], bool], patience: float = HANG) -> bool:
    """Waits until ``is_so()``; returns False if ``patience`` seconds pass first."""
    deadline = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY)
    return True


def on_this_machine(seconds: float) -> float:
    """Scales a limit for an idle machine to this machine's current load.

    If n processes wait for each core, everything takes n times as long. If each process
    has its own core, the limit stays as it is.
    """
    return seconds * max(1.0, machine_facts.load())
