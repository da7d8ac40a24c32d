"""Devices that draft and target share: who computes on each, and who waits.

A device computes one step at a time, and whoever comes first is first. ``Stages`` keeps
that order on a simulated clock. ``stage_locks`` keeps it among worker processes.
"""

from __future__ import annotations

from collections import deque

from .devices import AnyFuture


class Stages:
    """The order in which operations compute on shared devices, by stage."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[AnyFuture]] = {}

    def enter(self, stage: int, future: AnyFuture) -> bool:
        """Asks for a stage; whether it is free, so that ``future`` has it now."""
        queue = self._queues.setdefault(stage, deque())
        queue.append(future)
        return queue[0] is future

    def leave(self, stage: int, future: AnyFuture) -> AnyFuture | None:
        """Gives a stage back, or waits for it no more; who now has it, if new."""
        queue = self._queues[stage]
        had_it = queue[0] is future
        queue.remove(future)
        return queue[0] if had_it and queue else None
