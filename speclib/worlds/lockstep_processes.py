"""Requests in lock-step on real devices of this machine, on the wall-clock.

There is a worker process for the draft and one for the target, each with one copy of
its weights. A step sends each of them what all seats ask, and ends when both have
answered. A message has the whole text of every seat, and the rows that are not each
certain of one token come back through the pipe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from speclib.arguments import Count, Patience, Whole, checked
from speclib.core.sampling import Coins, Rows, Sampler
from speclib.data.latency import Durations, Latency
from speclib.data.pairs import Pair
from speclib.errors import BadValue
from speclib.models import preflight
from speclib.models.open_pair import OpenPair, open_pair
from speclib.models.seats import check_seats
from speclib.operations.operation import Done, Operation, Raw, Request
from speclib.operations.propose import Propose
from speclib.operations.score import Score

from . import cost_ratio
from .cost_ratio import CostRatio, Trial
from .devices import AnyFuture, DeviceFailed, DeviceLost, device_names, failed
from .lockstep import Answered, Asked, Lockstep, Seat
from .lockstep_worker import TaskDone, TasksDone, device
from .real_devices import TEXT_LENGTH
from .seated_models import Task
from .worker import Certain, Failure
from .worker_process import Worker, dismiss

MOST_SEATS = 64

# By what c is measured: a text, and a request that no other one is.
TEXT = (1,) * TEXT_LENGTH
OF_TRIALS = Request(run=-1, coins=Coins(), sampler=Sampler())


class ProcessLockstep(Lockstep):
    """``seats`` requests of ``pair`` at a time, in two worker processes.

    ``length``: of the longest text that a seat will hold, in tokens; then there must be
    memory for the keys and values of so many. ``emulate``: a latency; then undilated
    models compute the tokens, and every step lasts as long as it says. ``timeout``:
    seconds that a step may take.

    Raises BadValue for more seats than there may be or than there is memory for, and
    for models that cannot have several (see ``check_seats``); DeviceLost where a
    process ends or hangs. Use it as a context manager, or ``close()`` it.
    """

    @checked
    def __init__(
        self,
        pair: Pair | OpenPair,
        seats: Annotated[int, Whole(least=1, most=MOST_SEATS)],
        *,
        dtype: str = "auto",
        length: Count | None = None,
        emulate: Latency | Durations | None = None,
        timeout: Patience = 60.0,
        start_timeout: Patience = 300.0,
    ):
        if emulate is not None and not isinstance(emulate, Latency):
            raise BadValue("several requests at a time need a Latency to be emulated")
        opened = open_pair(pair)
        check_seats(opened, dtype)
        self.emulate = emulate
        self.kind = "measured" if emulate is None else "emulated"
        if emulate is None:
            cached = seats * (length or 0)
            preflight.check(opened, dtype, cached=cached)
        self.dtype = dtype
        self.timeout = timeout
        self._origin = time.monotonic()
        self._workers: dict[str, Worker] = {}
        super().__init__(seats, opened)
        try:
            for name in device_names():
                self._workers[name] = Worker(
                    name, opened.pair, device, name, seats, dtype, emulate
                )
            for name in device_names():
                self._receive(name, start_timeout)
        except BaseException:
            self.close()
            raise

    @property
    def now(self) -> float:
        return time.monotonic() - self._origin

    def vocab(self, seat: Seat) -> int:
        return int(self.opened.vocab)

    def settle(self, with_c: bool) -> None:
        """Measures c, if it is wanted, and sets the clock to zero.

        No request may be under way.
        """
        self.owner.check()
        if with_c:
            _ = self.cost_ratio
        self._origin = time.monotonic()

    def _perform(
        self, asked: Mapping[str, Sequence[Asked]]
    ) -> dict[str, tuple[list[Answered], float]]:
        tasks = {}
        for name, of_device in asked.items():
            tasks[name] = [Task(s.number, f.op, s.request) for s, f in of_device]
        outcomes = {}
        for name, done in self._ask_all(tasks).items():
            answers = []
            for (_, future), own in zip(asked[name], done.outcomes, strict=True):
                answers.append(self._answered(name, future, own))
            outcomes[name] = answers, done.end - done.start
        return outcomes

    def _ask_all(self, tasks: Mapping[str, Sequence[Task]]) -> dict[str, TasksDone]:
        """Has each device do its tasks, all devices at the same time.

        Where that is cut short nobody knows what workers were asked: they are ended.
        """
        try:
            for name, of_device in tasks.items():
                message: Any = of_device
                self._workers[name].ask(message)
            return {name: self._receive(name, self.timeout) for name in tasks}
        except BaseException:
            self.close()
            raise

    def _answered(self, name: str, future: AnyFuture, own: TaskDone) -> Answered:
        if own.cause:
            return Answered(Done(None, 0, 0), failed(name, future.op, own.cause))
        rows: Rows = own.rows
        if isinstance(own.rows, Certain):
            rows = own.rows.read(self.opened.vocab)
        return Answered(Done(Raw(own.small, rows), own.kept, own.fed))

    def _receive(self, name: str, timeout: float) -> TasksDone:
        """The next message of a worker; raises what went wrong there."""
        try:
            message = self._workers[name].receive(timeout)
        except DeviceLost as error:
            raise DeviceLost(
                f"device {name!r} of pair {self.opened.pair.name!r} was lost: {error}"
            ) from None
        if isinstance(message, Failure):
            raise DeviceFailed(f"device {name!r} failed: {message.cause}")
        done: TasksDone = message
        return done

    @cached_property
    def cost_ratio(self) -> CostRatio:
        """c of passes that are fed a token of every seat, as trials show it now."""
        if self.emulate is not None:
            return CostRatio.known(self.emulate.c_of_batch(len(self.seats)))

        drafted = cost_ratio.fitting_drafts(self._take_trial)
        began = self.now
        return cost_ratio.measure(
            lambda: self._take_trial(drafted), lambda: self.now - began
        )

    def _take_trial(self, drafted: int) -> Trial:
        """A target pass of all seats, beside ``drafted`` passes of the draft."""
        operations: dict[str, Operation] = {
            "draft": Propose(TEXT, drafted),
            "target": Score(TEXT),
        }
        tasks = {}
        for name, operation in operations.items():
            tasks[name] = [Task(s.number, operation, OF_TRIALS) for s in self.seats]
        seconds = {}
        for name, done in self._ask_all(tasks).items():
            seconds[name] = done.end - done.start
        return Trial(target=seconds["target"], draft=seconds["draft"] / drafted)

    def close(self) -> None:
        """Ends the workers, for good. A forked child leaves its parent's alone."""
        self.owner.close()
        if self.owner.is_here:
            dismiss(self._workers)

    def __enter__(self) -> ProcessLockstep:
        self.owner.check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
