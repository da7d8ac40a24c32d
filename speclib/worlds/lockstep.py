"""Several requests in lock-step over the same devices.

Each request has a *seat*: a world of its own, in which a method's page runs as it does
alone, for it does not know of the others. The pages take turns, each until it waits.
When all of them wait a *step* is made: each device does what the seats have asked of
it, in one go, and the step is over when the slowest device is done. Speculative
decoding and PEARL of two requests::

    step             1             2             3             4
    SD      draft    drafts 0 1                  drafts 0 1
            target                 passes 0 1                  passes 0 1
    PEARL   draft    drafts 0 1    drafts 0 1    drafts 0 1    drafts 0 1
            target   passes 0 1    passes 0 1    passes 0 1    passes 0 1

A page may be ahead of the others, as one of SSD is that has found its window: then a
device does in a step what it is asked by some seats, and the other device what it is
asked by the others. A seat whose request ends takes the next one, or stays empty where
there is none.

This is no serving engine: nothing arrives meanwhile, and no pass begins before the
step's slowest one is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from speclib.data.latency import Latency, drafts_beside_a_pass, message_seconds
from speclib.errors import BadValue
from speclib.operations.model import Model
from speclib.operations.operation import Done, perform

from .cost_ratio import CostRatio
from .devices import AnyFuture, cause_of, device_names, failed
from .owner import Owner
from .turns import Turn
from .world import World


class Asked(NamedTuple):
    """What a seat has asked of a device."""

    seat: Seat
    future: AnyFuture


class Answered(NamedTuple):
    """What came of it; ``done`` gives nothing where there is an ``error``."""

    done: Done
    error: Exception | None = None


class Seat(World):
    """The world of one request among several (see the top of this file).

    number: which of the seats, from 0 on.

    An operation that nobody wants any more still takes its part of the step.
    """

    def __init__(self, steps: Lockstep, number: int, opened: Any = None):
        self._steps = steps
        self._origin = 0.0
        self._turn: Turn | None = None
        super().__init__(device_names(), "after-op", opened)
        self.number = number
        self.kind = steps.kind

    def take_turns(self, turn: Turn) -> None:
        """Has the page pause in ``turn`` wherever it waits."""
        self._turn = turn

    def asked(self, device: str) -> AnyFuture | None:
        """What ``device`` is asked for the step that comes."""
        return self._running[device]

    def answer(self, future: AnyFuture, answered: Answered, seconds: float) -> None:
        """The step has come to an end, and the device has taken so many ``seconds``."""
        done = answered.done
        end = future.start + seconds
        self._finish(future, done.raw, end, done.kept, done.fed, answered.error)

    def first(self, *futures: AnyFuture) -> AnyFuture:
        """Raises BadValue: in a step everything ends at once."""
        raise BadValue(
            "this method goes on as soon as one of several devices is done, and "
            "requests in lock-step wait for all: decode them one at a time"
        )

    @property
    def now(self) -> float:
        return self._steps.now - self._origin

    def _zero(self) -> None:
        self._origin = self._steps.now

    @property
    def vocab(self) -> int:
        return self._steps.vocab(self)

    @property
    def cost_ratio(self) -> CostRatio:
        return self._steps.cost_ratio

    @property
    def drafts_beside_a_pass(self) -> float:
        return self._steps.drafts_beside_a_pass

    def _start(self, future: AnyFuture) -> None:
        """It begins with the step."""

    def _step(self) -> None:
        assert self._turn is not None, "a page takes turns before it waits"
        self._turn.pause()


class Lockstep:
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
            self.owner.give_back()

    def _make_step(self) -> None:
        """Has each device do what it was asked, and tells the seats."""
        asked: dict[str, list[Asked]] = {}
        for name in device_names():
            for seat in self.seats:
                future = seat.asked(name)
                if future is not None:
                    asked.setdefault(name, []).append(Asked(seat, future))

        outcomes = self._perform(asked)
        for name, of_device in asked.items():
            answers, seconds = outcomes[name]
            for (seat, future), answered in zip(of_device, answers, strict=True):
                seat.answer(future, answered, seconds)

    def _perform(
        self, asked: Mapping[str, Sequence[Asked]]
    ) -> dict[str, tuple[list[Answered], float]]:
        """Of each device its answers, and its seconds; the clock is then at the end."""
        raise NotImplementedError

    @property
    def now(self) -> float:
        """Seconds since the first step."""
        raise NotImplementedError

    def vocab(self, seat: Seat) -> int:
        """How many rows the distributions of a seat have."""
        raise NotImplementedError

    @property
    def cost_ratio(self) -> CostRatio:
        """c, of passes that are fed a token of every seat."""
        raise NotImplementedError

    @property
    def drafts_beside_a_pass(self) -> float:
        """How many drafts take as long as a target pass, for all seats at a time."""
        return self.cost_ratio.value


def answers_of(
    name: str, asked: Sequence[Asked], outcomes: Sequence[Done | Exception]
) -> list[Answered]:
    """What came of the operations of a device, for their seats."""
    answers = []
    for (_, future), outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, Done):
            answers.append(Answered(outcome))
            continue
        error = failed(name, future.op, cause_of(outcome))
        error.__cause__ = outcome
        answers.append(Answered(Done(None, 0, 0), error))
    return answers


class VirtualLockstep(Lockstep):
    """Seats on a simulated clock, with passes that last as ``latency`` says.

    ``opened``: see World. Raises BadValue where draft and target share devices there.
    """

    kind = "virtual"

    def __init__(self, seats: int, latency: Latency, opened: Any = None):
        self.latency = latency
        self._now = 0.0
        self._models: dict[Seat, Mapping[str, Model]] = {}
        super().__init__(seats, opened)

    def settle(self, with_c: bool) -> None:
        """Sets the clock to zero."""
        self._now = 0.0

    def give_models(self, seat: Seat, models: Mapping[str, Model]) -> None:
        """``models``: device name -> the model that computes the seat's next request.

        On a real machine all seats have the same weights, and a cache each.
        """
        self._models[seat] = models
        seat.context = min(model.context for model in models.values())

    @property
    def now(self) -> float:
        return self._now

    def vocab(self, seat: Seat) -> int:
        return self._models[seat]["target"].vocab

    @property
    def cost_ratio(self) -> CostRatio:
        return CostRatio.known(self.latency.c_of_batch(len(self.seats)))

    @property
    def drafts_beside_a_pass(self) -> float:
        return drafts_beside_a_pass(self.latency, len(self.seats))

    def _perform(
        self, asked: Mapping[str, Sequence[Asked]]
    ) -> dict[str, tuple[list[Answered], float]]:
        outcomes = {}
        for name, of_device in asked.items():
            answers = self._compute_all(name, of_device)
            passes = []
            for (_, future), (done, _) in zip(of_device, answers, strict=True):
                passes.append(future.op.passes(done.kept, done.fed))
            seconds = self.latency.seconds_together(name, passes)
            seconds += 2 * message_seconds(self.latency, name)
            outcomes[name] = answers, seconds
        self._now += max((seconds for _, seconds in outcomes.values()), default=0.0)
        return outcomes

    def _compute_all(self, name: str, asked: Sequence[Asked]) -> list[Answered]:
        """What a device writes for all seats, at once; only durations are simulated."""
        outcomes: list[Done | Exception] = []
        for seat, future in asked:
            try:
                model = self._models[seat][name]
                outcomes.append(perform(future.op, model, seat.request))
            except Exception as raised:  # it comes out when the page waits
                outcomes.append(raised)
        return answers_of(name, asked, outcomes)
