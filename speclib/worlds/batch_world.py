"""Several requests in lock-step over the same devices.

Each request has a *seat*: its own world, in which a method's page runs as it does
alone, for it does not know of the others. The pages take turns, each until it waits.
When all of them wait a *step* is made: each device does what the seats have asked of
it, in one go, and the step is over when the slowest device is done. Speculative
decoding and PEARL of two requests::

    step             1             2             3             4
    SD      draft    drafts 0 1                  drafts 0 1
            target                 passes 0 1                  passes 0 1
    PEARL   draft    drafts 0 1    drafts 0 1    drafts 0 1    drafts 0 1
            target   passes 0 1    passes 0 1    passes 0 1    passes 0 1

A page may be ahead of the others, as SSD's is when it has found its window. One device
then serves some seats in a step, and the other device serves the others. A seat whose
request ends takes the next one, or stays empty if none is left.

This is no serving engine: nothing arrives meanwhile, and no pass begins before the
step's slowest one is over.
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
    """What a device gave in a step, in the order in which it was asked.

    ``seconds``: how long it took for all of it.
    """

    outcomes: Sequence[Performed | DeviceFailed]
    seconds: float


class Seat(World):
    """The world of one request among several (see the top of this file).

    number: which of the seats, from 0 on.

    An operation that is no longer wanted still takes its part of the step.
    """

    def __init__(self, batch: BatchWorld, number: int, opened: Any = None):
        self._batch = batch
        self._origin = 0.0
        self._turn: Turn | None = None
        super().__init__(device_names(), "after-op", opened)
        self.number = number
        self.kind = batch.kind

    def take_turns(self, turn: Turn) -> None:
        """Has the page pause in ``turn`` wherever it waits."""
        self._turn = turn

    def asked(self, device: str) -> SeatTask | None:
        """What ``device`` is asked for the step that comes."""
        future = self._running[device]
        if future is None:
            return None
        return SeatTask(self.number, future.op, self.run)

    def answer(
        self, device: str, outcome: Performed | DeviceFailed, seconds: float
    ) -> None:
        """The step has ended, and the device has taken this many ``seconds``."""
        future = self._running[device]
        assert future is not None, "it was asked"
        error = None
        if isinstance(outcome, DeviceFailed):
            error, outcome = outcome, NOTHING
        self._finish(future, outcome, future.start + seconds, error)

    def first(self, *futures: AnyFuture) -> AnyFuture:
        """Raises BadValue: in a step everything ends at once."""
        raise BadValue(
            "this method goes on as soon as one of several devices is done, and "
            "requests in lock-step wait for all: decode them one at a time"
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
    def drafts_beside_a_pass(self) -> float:
        return self._batch.drafts_beside_a_pass

    def _start(self, future: AnyFuture) -> None:
        """It begins with the step."""

    def _step(self) -> None:
        assert self._turn is not None, "a page takes turns before it waits"
        self._turn.pause()


class BatchWorld:
    """Leads several seats step by step. A subclass knows the devices and the clock.

    seats: one for each request that is decoded at a time. opened: see World.
    """

    kind = "abstract"
    dtype = "auto"

    def __init__(self, seats: int, opened: Any = None):
        self.owner = Owner()
        self.opened = opened
        self.seats = [Seat(self, number, opened) for number in range(seats)]

    def settle(self, with_c: bool) -> None:
        """Makes ready for requests that begin now; ``with_c``: c will be asked for."""

    def run(self, serve: Callable[[Seat], object]) -> None:
        """Runs ``serve(seat)`` for all seats, until every one has ended.

        Raises what any of them raises; the others are given up then. Raises
        WorldNotFree while another call runs, and for a closed world.
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
        """Has each device do what it was asked, and tells the seats."""
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
        """The answers of each device; the clock is then at the step's end."""
        raise NotImplementedError

    def _zero(self) -> None:
        """Sets the clock to zero, and has the devices ready."""

    def _end(self) -> None:
        """Called after the last step, however it ended."""

    @property
    def now(self) -> float:
        """Seconds since the first step."""
        raise NotImplementedError

    def vocab(self, seat: Seat) -> int:
        """How many rows the distributions of a seat have."""
        return int(self.opened.vocab)

    @property
    def cost_ratio(self) -> CostRatio:
        """c, of passes that are fed a token of every seat."""
        raise NotImplementedError

    @property
    def drafts_beside_a_pass(self) -> float:
        """How many drafts take as long as a target pass, for all seats at a time."""
        return self.cost_ratio.value
