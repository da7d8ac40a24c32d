"""Requests in lock-step on real devices of this machine, in wall-clock time.

Draft and target have one worker process each, with one copy of the weights. In a step,
each worker performs one operation, ``Together``: everything that the seats ask of it.
Messages, clocks and faults work as in ``Processes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from speclib.arguments import Count, Patience, Whole, checked
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.data.pairs import Pair
from speclib.models import preflight
from speclib.models.open_pair import OpenPair
from speclib.operations.operation import Operation, Performed

from .batch_world import BatchWorld, StepAnswers
from .cost_ratio import CostRatio
from .devices import DeviceFailed, failed
from .performer import Failure
from .processes import Processes
from .seated_models import SeatTask, Together

MOST_SEATS = 64


class SeatedProcesses(Processes):
    """A draft and a target that serve several requests at once.

    ``length``: see ``ProcessBatch``; ``settings``: the arguments of Processes.
    """

    def __init__(self, pair: Pair | OpenPair, seats: int, length: int, **settings: Any):
        self.seats = seats
        self._length = length
        super().__init__(pair, **settings)

    def _refuse_what_does_not_fit(self) -> None:
        self.opened.check_seats(self.dtype)
        if self.emulate is None:
            cached = self.seats * self._length
            preflight.check(self.opened, self.dtype, cached=cached)

    def _as_timed(self, operation: Operation) -> Together:
        """Repeats the operation in every seat, as one operation."""
        own = replace(operation, text=tuple(operation.text))
        tasks = tuple(SeatTask(seat, own, self.run) for seat in range(self.seats))
        return Together(self.text, tasks)


class ProcessBatch(BatchWorld):
    """``seats`` requests of ``pair`` at a time, in two worker processes.

    ``length``: the longest text of a seat, in tokens; its keys and values must fit into
    memory, for every seat. ``emulate``: a latency to emulate, if any. Undilated models
    then compute the tokens, and every step takes the time that the latency specifies.
    ``timeout``: the most seconds that a step may take.

    devices: the world that performs the steps; see Processes for its errors.

    Raises BadValue for too many seats, for seats that do not fit into memory, and for
    models that cannot serve several requests (see ``OpenPair.check_seats``). Use it as
    a context manager, or ``close()`` it.
    """

    @checked
    def __init__(
        self,
        pair: Pair | OpenPair,
        seats: Annotated[int, Whole(least=1, most=MOST_SEATS)],
        *,
        dtype: str = "auto",
        length: Count | None = None,
        emulate: Latency | None = None,
        timeout: Patience = 60.0,
        start_timeout: Patience = 300.0,
    ):
        self.emulate = emulate
        self.dtype = dtype
        self.devices = SeatedProcesses(
            pair,
            seats,
            length or 0,
            dtype=dtype,
            emulate=emulate,
            timeout=timeout,
            start_timeout=start_timeout,
        )
        self.kind = self.devices.kind
        super().__init__(seats, self.devices.opened)

    @property
    def now(self) -> float:
        return self.devices.now

    def settle(self, with_c: bool) -> None:
        """Measures c, if ``with_c`` asks for it and it has not been measured yet."""
        self.owner.check()
        if with_c:
            _ = self.cost_ratio

    def _zero(self) -> None:
        self.devices.begin((), sampler=Sampler(), coins=Coins(), limit=0)

    def _end(self) -> None:
        self.devices.give_up()

    def _perform(
        self, tasks_of: Mapping[str, Sequence[SeatTask]]
    ) -> dict[str, StepAnswers]:
        operations = {}
        for name, tasks in tasks_of.items():
            operations[name] = Together(self.devices.text, tuple(tasks))

        answers = {}
        for name, (done, seconds) in self.devices.compute_at_once(operations).items():
            outcomes = []
            for task, own in zip(tasks_of[name], done, strict=True):
                outcomes.append(self._outcome(name, task.operation, own))
            answers[name] = StepAnswers(outcomes, seconds)
        return answers

    def _outcome(
        self, name: str, operation: Operation, own: Performed | Failure
    ) -> Performed | DeviceFailed:
        """The outcome of an operation, with its rows restored."""
        if isinstance(own, Failure):
            return failed(name, operation, own.cause)
        return self.devices.with_rows(own, name)

    @property
    def cost_ratio(self) -> CostRatio:
        """c for passes that feed one token of each seat."""
        if self.emulate is not None:
            return CostRatio.known(self.emulate.c_of_batch(len(self.seats)))
        return self.devices.cost_ratio

    def close(self) -> None:
        """Ends the workers for good. In a forked child, leaves them alone."""
        self.owner.close()
        self.devices.close()

    def __enter__(self) -> ProcessBatch:
        self.owner.check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
