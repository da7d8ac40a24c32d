"""A runner of cells that only lets a clock of its own run on, as far as they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from speclab.experiment.limits import NO_LIMITS, Limits
from speclab.experiment.spec import Spec, WorkerPool
from speclab.progress import Progress

Seconds = Callable[[Spec], float]


@dataclass(frozen=True)
class Ran:
    """A request that was run: the ``number``-th of a cell, and when it had ended."""

    spec: Spec
    number: int
    end: float


@dataclass(frozen=True)
class Stored:
    """What a cache would have of a cell."""

    stats: list[int]


class SimulatedRunner:
    """Does what ``Runner`` promises, on a clock of its own.

    Cells of a pair share workers, a finished request is kept, and nothing begins after
    a deadline. A virtual cell is run as a whole.

    ``seconds_of``: what a request of a cell takes, or a virtual cell. A start of
    workers takes ``start`` seconds.
    """

    def __init__(self, seconds_of: Seconds, start: float = 5.0):
        self.now = 0.0
        self.seconds_of = seconds_of
        self.bar = Progress("cells", show=False)
        self.errors: dict[Spec, Exception] = {}
        self.log: list[Ran] = []
        self.started: list[WorkerPool] = []
        self._start = start
        self._open: WorkerPool | None = None
        self._requests: dict[Spec, int] = {}

    def clock(self) -> float:
        """The time now, in seconds."""
        return self.now

    def stored(self, spec: Spec) -> Stored | None:
        """What is done of a cell, as the cache would say it."""
        requests = self._requests.get(spec, 0)
        return Stored(list(range(requests))) if requests else None

    def run(self, specs: Iterable[Spec], limits: Limits = NO_LIMITS) -> None:
        specs = list(specs)
        most = max(self._goal(spec, limits) for spec in specs)
        for number in range(most):
            for spec in specs:
                done = self._requests.get(spec, 0)
                if done == number < self._goal(spec, limits):
                    if self._is_over(limits):
                        return
                    self._run_request(spec)

    def repeat_disturbed(
        self, specs: Iterable[Spec], limits: Limits = NO_LIMITS
    ) -> None:
        """Nothing is ever disturbed here."""

    def _goal(self, spec: Spec, limits: Limits) -> int:
        return 1 if spec.kind == "virtual" else limits.requests_of(spec)

    def _is_over(self, limits: Limits) -> bool:
        return limits.deadline is not None and self.now >= limits.deadline

    def _run_request(self, spec: Spec) -> None:
        if spec.kind == "measured" and self._open != spec.worker_pool:
            self._open = spec.worker_pool
            self.started.append(spec.worker_pool)
            self.now += self._start
        self.now += self.seconds_of(spec)
        number = self._requests.get(spec, 0)
        self._requests[spec] = spec.requests if spec.kind == "virtual" else number + 1
        self.log.append(Ran(spec, number, self.now))
