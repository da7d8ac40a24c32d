"""Named devices and the futures of what they were asked to do. They know neither time nor place."""

from __future__ import annotations

from .errors import SpeclibError
from .operations import Propose, Score


class DeviceLost(SpeclibError):
    """A device died, hung or failed; its message names the device and the cause."""


class Future:
    """One submitted operation; once ``done``, ``value`` is its result or ``error`` why not."""

    __slots__ = ("op", "device", "id", "round", "start", "done", "cancelled", "value", "error")

    def __init__(self, op, device: str, id: int, round: int):
        self.op, self.device, self.id, self.round = op, device, id, round
        self.start, self.value, self.error = 0.0, None, None
        self.done = self.cancelled = False


class Device:
    """A named place where one model runs. Submits; knows nothing of when or where."""

    def __init__(self, world, name: str):
        self.world, self.name = world, name

    def propose(self, text, n: int, index: int = 0, confidence: float | None = None) -> Future:
        """Future of ``n`` Drafted tokens after ``text``; fewer where the models' context ends, or
        where ``confidence`` ends them (see Propose)."""
        room = max(0, self.world.context - len(text))
        return self.world.submit(self.name, Propose(tuple(text), min(n, room), index, confidence))

    def score(self, text, last: int = 0) -> Future:
        """Future of rows [last + 1, V]: p after text[:-last] ... p after text."""
        return self.world.submit(self.name, Score(tuple(text), last))
