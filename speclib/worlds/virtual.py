"""The virtual clock: a method's real code, with durations from a latency file.

The clock is a heap of (time, sequence number). Equal times are the norm, so ties have
an order: that of starting. Models compute their tokens at once; only the durations are
simulated. Prefill and catching up are charged too, since ``Prefix`` counts what is fed
here as everywhere.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from speclib.arguments import checked
from speclib.data.latency import Durations, Latency
from speclib.errors import SpeclibError
from speclib.operations.operation import Done, perform

from .cost_ratio import CostRatio
from .devices import AnyFuture, Cancelled
from .world import World


class Ending(NamedTuple):
    """An entry of the clock's heap: ``future`` ends at ``time``, with what it gave."""

    time: float
    number: int  # in the order of starting
    future: AnyFuture
    done: Done
    error: Exception | None


class Virtual(World):
    """A simulated clock; deterministic to the last digit.

    ``models``: device name -> model. ``latency``: a ``Latency``, or any other
    ``Durations``. ``cancel``: see World.
    """

    kind = "virtual"

    @checked
    def __init__(
        self,
        models: dict[str, Any],
        latency: Latency | Durations,
        *,
        cancel: str = "immediate",
    ):
        super().__init__(tuple(models), cancel)
        self.models = models
        self.latency = latency
        for model in models.values():
            self.context = min(self.context, getattr(model, "context", self.context))
        self._now = 0.0
        self._heap: list[Ending] = []
        self._sequence = count()

    @property
    def now(self) -> float:
        return self._now

    @property
    def vocab(self) -> int:
        return min(int(model.vocab) for model in self.models.values())

    @property
    def cost_ratio(self) -> CostRatio:
        return CostRatio.known(self.latency.c)

    def _zero(self) -> None:
        self._now = 0.0
        self._heap = []

    def _start(self, future: AnyFuture) -> None:
        error = None
        try:
            done = perform(future.op, self.models[future.device], self.request)
        except Exception as raised:  # the method's to handle, when it waits for it
            done, error = Done(None, 0, 0), raised
        seconds = self.latency.seconds(future.device, future.op, done.kept, done.fed)
        self._schedule(self._now + seconds, future, done, error)

    def _schedule(
        self, time: float, future: AnyFuture, done: Done, error: Exception | None = None
    ) -> None:
        heappush(self._heap, Ending(time, next(self._sequence), future, done, error))

    def _step(self) -> None:
        if not self._heap:
            raise SpeclibError(
                "the method waits for an operation that was cancelled or never "
                "submitted: nothing is running"
            )
        ending = heappop(self._heap)
        if self._running[ending.future.device] is not ending.future:
            return  # it was aborted, and its device went on
        self._now = ending.time
        done = ending.done
        self._finish(
            ending.future, done.raw, ending.time, done.kept, done.fed, ending.error
        )

    def _abort(self, future: AnyFuture) -> None:
        """The device is free now; of a pass that was aborted nothing stays cached."""
        ending = self._ending_of(future)
        done = Done(None, 0, 0)
        if ending.error is None:
            lasts = (ending.time - future.start) or 1.0  # it may last no time at all
            share = (self._now - future.start) / lasts
            done = future.op.until(ending.done, share)
        self.models[future.device].cut(done.kept + done.fed)
        self._finish(
            future, done.raw, self._now, done.kept, done.fed, Cancelled("cancelled")
        )

    def _ending_of(self, future: AnyFuture) -> Ending:
        for ending in self._heap:
            if ending.future is future:
                return ending
        raise AssertionError(f"{future.op.name} is not running")
