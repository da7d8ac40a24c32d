"""The virtual clock: a method's real code, durations from a latency file.

A heap keyed (time, sequence number): equal deadlines are the norm, so ties have an order, that of
starting. Models compute their tokens inline; only their durations are simulated. Prefill and
catch-up are charged, since the same ``Prefix`` counts what is fed.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from speclib.data.latency import Latency
from speclib.errors import SpeclibError
from speclib.operations.operation import Done, perform, reached

from .world import Cancelled, Future, World


class Virtual(World):
    """``models``: device name -> model. ``latency``: a Latency, or any object with its
    ``seconds`` and ``c``. Deterministic to the last digit."""

    kind = "virtual"
    datastore = None  # what REST looks up; None: the text itself

    def __init__(self, models: dict, latency: Latency, *, cancel: str = "immediate"):
        super().__init__(tuple(models), cancel)
        self.models, self.latency = models, latency
        self.context = min(getattr(m, "context", self.context) for m in models.values())
        self._now, self._heap, self._sequence = 0.0, [], count()

    @property
    def now(self) -> float:
        return self._now

    @property
    def vocab(self) -> int:
        return min(m.vocab for m in self.models.values())

    @property
    def ratio(self) -> float:
        return self.latency.c

    def _zero(self) -> None:
        self._now, self._heap = 0.0, []

    def _start(self, future: Future) -> None:
        model = self.models[future.device]
        try:
            done = perform(future.op, model, self.request)
        except Exception as error:
            done = Done(error, 0, 0)
        seconds = self.latency.seconds(future.device, future.op, done.kept, done.fed)
        heappush(self._heap, (self._now + seconds, next(self._sequence), future, done))

    def _step(self) -> None:
        if not self._heap:
            raise SpeclibError(
                "the method waits for an operation that was cancelled or never "
                "submitted: nothing is running"
            )
        end, _, future, (value, kept, fed) = heappop(self._heap)
        if self._running[future.device] is not future:
            return  # aborted: its device went on
        self._now = end
        error = value if isinstance(value, Exception) else None
        self._finish(future, None if error else value, end, kept, fed, error)

    def _abort(self, future: Future) -> None:
        """The device is free now; of an aborted pass nothing stays in the KV cache."""
        end, done = next((end, done) for end, _, f, done in self._heap if f is future)
        value, kept, fed = None, 0, 0
        if not isinstance(done.value, Exception):
            share = (self._now - future.start) / ((end - future.start) or 1.0)
            value, kept, fed = reached(future.op, done, share)
        self.models[future.device].cut(kept + fed)
        self._finish(future, value, self._now, kept, fed, error=Cancelled("cancelled"))
