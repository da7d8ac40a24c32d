"""Time limits that hold on a busy machine, too."""

from __future__ import annotations

from speclib import machine


def on_this_machine(seconds: float) -> float:
    """So many seconds of an idle machine, in seconds of this one, as busy as it is now.

    Where several processes wait for each core, everything takes so many times as long.
    Where each has a core of its own, a limit is as strict as it is written.
    """
    return seconds * max(1.0, machine.load())
