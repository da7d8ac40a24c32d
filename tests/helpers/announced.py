"""Workers that report their progress or die on cue, and a clock that tests move."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from speclib.data.latency import Latency, Step
from speclib.data.pairs import Pair
from speclib.operations.operation import Operation
from speclib.worlds.performer import DeviceSpec, device

LONG_TEXT = 1000  # tokens; shorter texts are not announced, or the pipe would fill up


@dataclass(frozen=True)
class Announced(Latency):
    """A latency whose devices announce through ``tell`` that an operation has started.

    A device sends its name after it has computed the tokens of a long text, and before
    it waits.
    """

    tell: Connection | None = None

    def steps(
        self, device: str, operation: Operation, kept: int, fed: int
    ) -> list[Step]:
        assert self.tell is not None
        if kept + fed >= LONG_TEXT:
            self.tell.send(device)
        return super().steps(device, operation, kept, fed)


class HandClock:
    """A worker's clock that moves only while the worker waits.

    A wait for a message returns at once if the message has arrived, and otherwise takes
    the whole time. ``on_wait`` is called first, with the clock and the seconds.
    """

    def __init__(self, on_wait: Callable[[HandClock, float], None] | None = None):
        self.seconds = 0.0
        self.on_wait = on_wait

    def now(self) -> float:
        return self.seconds

    def wait(self, pipe: Connection, seconds: float) -> bool:
        if self.on_wait is not None:
            self.on_wait(self, seconds)
        if pipe.poll():
            return True
        self.seconds += max(0.0, seconds)
        return False


def end_in_the_build(
    unhappy: str, sent: signal.Signals, pair: Pair, spec: DeviceSpec, *args: Any
) -> Any:
    """Builds a device as ``performer.device`` does, unless its name is ``unhappy``.

    That device's process sends itself a signal, which kills or stops it.
    """
    if spec.name == unhappy:
        os.kill(os.getpid(), sent)
    return device(pair, spec, *args)
