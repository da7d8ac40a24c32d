"""Several requests in lock-step over the same devices.

Each request has a *seat*: its own world. The method runs there as if it were alone, and
does not know about the other requests. The seats take turns: each runs until it waits.
When all of them wait, the batch takes a *step*: each device performs at once everything
that the seats asked of it, and the step ends with the slowest device. Speculative
decoding and PEARL with two requests::

    step             1             2             3             4
    SD      draft    drafts 0 1                  drafts 0 1
            target                 passes 0 1                  passes 0 1
    PEARL   draft    drafts 0 1    drafts 0 1    drafts 0 1    drafts 0 1
            target   passes 0 1    passes 0 1    passes 0 1    passes 0 1

A seat may be ahead of the others, for example in SSD if its next window is ready. In a
step, one device then serves some seats, and the other device the rest. A seat whose
request ends takes the next one, or stays empty if none is left.

This is not a serving engine: no requests arrive while it runs, and no pass begins
before the slowest pass of the last step has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from speclib.errors import BadValue
from speclib.operations.operation import NOTHING, Performed

from .cost_ratio import CostRatio
from .devices import AnyFuture, DeviceFailed, device_names
from .owner import Owner
from .seated_models import SeatTask
from .turns import Turn
from .world import World


class StepAnswers(NamedTuple):
    """The outcomes of a device's operations in a step, in the order of its tasks.

    ``seconds``: the time that all of them took.
    """

    outcomes: Sequence[Performed | DeviceFailed]
    seconds: float


class Seat(World):
    """The world of one request among several (see the top of this file).

    number: the seat's number, from 0.

    An operation that is no longer wanted still takes part in the step.
    """

    def __init__(self, batch: BatchWorld, number: int, opened: Any = None):
        self._batch = batch
        self._origin = 0.0
        self._turn: Turn | None = None
        super().__init__(device_names(), "after-op", opened)
        self.number = number
        self.kind = batch.kind

    def take_turns(self, turn: Turn) -> None:
        """Makes the method pause ``turn`` whenever it has to wait."""
        self._turn = turn

    def asked(self, device: str) -> SeatTask | None:
        """The task of ``device`` for the next step, if any."""
        future = self._running[device]
        if future is None:
            return None
        return SeatTask(self.number, future.op, self.run)

    def answer(
        self, device: str, outcome: Performed | DeviceFailed, seconds: float
    ) -> None:
        """Receives the outcome of a step that took the device ``seconds``."""
        future = self._running[device]
        assert future is not None, "it was asked"
        error = None
        if isinstance(outcome, DeviceFailed):
            error, outcome = outcome, NOTHING
        self._finish(future, outcome, future.start + seconds, error)

    def first(self, *futures: AnyFuture) -> AnyFuture:
        """Raises BadValue: all operations of a step end together."""
        raise BadValue(
            "this method continues as soon as one of several devices is done, but "
            "requests in lock-step wait for all devices: decode them one at a time"
        )

    @property
    def now(self) -> float:
        return self._batch.now - self._origin

    def _zero(self) -> None:
        self._origin = self._batch.now

    @property
    def vocab(self) -> int:
        return self._batch.vocab(self)

    @property
    def cost_ratio(self) -> CostRatio:
        return self._batch.cost_ratio

    @property
    def drafts_per_target_pass(self) -> float:
        return self._batch.drafts_per_target_pass

    def _start(self, future: AnyFuture) -> None:
        """Does nothing: the operation begins with the next step."""

    def _step(self) -> None:
        assert self._turn is not None, "a method takes turns before it waits"
        self._turn.pause()


class BatchWorld:
    """Runs several seats step by step. A subclass provides the devices and the clock.

    seats: the number of requests decoded at a time. opened: see World.
    """

    kind = "abstract"
    dtype = "auto"

    def __init__(self, seats: int, opened: Any = None):
        self.owner = Owner()
        self.opened = opened
        self.seats = [Seat(self, number, opened) for number in range(seats)]

    def settle(self, with_c: bool) -> None:
        """Prepares for requests; ``with_c``: whether they will need c."""

    def run(self, serve: Callable[[Seat], object]) -> None:
        """Runs ``serve(seat)`` for all seats until all have ended.

        If one raises an error, ends the others and raises the same error. Raises
        WorldNotFree if another call is running, or the world is closed.
        """
        self.owner.take()
        turns: list[Turn] = []
        try:
            self._zero()
            turns += [Turn(partial(serve, seat)) for seat in self.seats]
            for seat, turn in zip(self.seats, turns, strict=True):
                seat.take_turns(turn)
            while not all(turn.is_over for turn in turns):
                for turn in turns:
                    if not turn.is_over:
                        turn.resume()
                self._make_step()
        finally:
            for turn in turns:
                turn.give_up()
            self._end()
            self.owner.give_back()

    def _make_step(self) -> None:
        """Has each device perform its tasks, and gives the seats the outcomes."""
        tasks_of: dict[str, list[SeatTask]] = {}
        for name in device_names():
            for seat in self.seats:
                task = seat.asked(name)
                if task is not None:
                    tasks_of.setdefault(name, []).append(task)

        answers = self._perform(tasks_of)
        for name, tasks in tasks_of.items():
            outcomes, seconds = answers[name]
            for task, outcome in zip(tasks, outcomes, strict=True):
                self.seats[task.seat].answer(name, outcome, seconds)

    # -- what a subclass provides ------------------------------------------------------
    def _perform(
        self, tasks_of: Mapping[str, Sequence[SeatTask]]
    ) -> dict[str, StepAnswers]:
        """Performs a step, moves the clock to its end, and returns the answers."""
        raise NotImplementedError

    def _zero(self) -> None:
        """Sets the clock to zero and makes the devices ready."""

    def _end(self) -> None:
        """Called after the last step, even if it failed."""

    @property
    def now(self) -> float:
        """Seconds since the first step."""
        raise NotImplementedError

    def vocab(self, seat: Seat) -> int:
        """The size of the vocabulary in a seat."""
        return int(self.opened.vocab)

    @property
    def cost_ratio(self) -> CostRatio:
        """c for passes that feed one token of each seat."""
        raise NotImplementedError

    @property
    def drafts_per_target_pass(self) -> float:
        """How many draft passes over all seats take as long as a target pass."""
        return self.cost_ratio.value
