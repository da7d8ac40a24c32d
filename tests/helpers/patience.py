"""How tests wait: for an event or a condition, and never for a number of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from speclab import machine_facts

# Seconds that nothing takes which is to happen at once, however busy the machine is.
HANG = 60.0

LOOK_EVERY = 0.001  # seconds between looks at a condition


def wait_until(is_so: Callable[[], bool], patience: float = HANG) -> bool:
    """Waits until ``is_so()``; False if it is not so after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY)
    return True


def on_this_machine(seconds: float) -> float:
    """So many seconds of an idle machine, in seconds of this one, as busy as it is now.

    Where several processes wait for each core, everything takes so many times as long.
    Where each has a core of its own, a limit is as strict as it is written.
    """
    return seconds * max(1.0, machine_facts.load())
