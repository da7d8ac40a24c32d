"""The virtual clock: a method's real code, with durations from a latency file.

The clock is a heap of (time, sequence number). Equal times are the norm; ties are
handled in the order of scheduling. A method that must not depend on that order waits
with ``earliest``, which returns everything that ends at one moment. Adding the same
seconds in another order changes the rounding, so times that differ only by rounding
count as the same moment.

Models compute their tokens at once; only the durations are simulated. They include
prefill and catching up, since ``Prefix`` counts fed tokens here as in every world. If
draft and target share devices, an operation is a chain of steps, and each step waits
until its device is free. If messages take time, an operation begins when the question
reaches its device and is done when the answer is back. As on a real network, the device
gets its next question only then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from speclib.arguments import checked
from speclib.data.latency import Latency, Step
from speclib.operations.model import Model
from speclib.operations.operation import NOTHING, Performed, perform

from .cost_ratio import CostRatio
from .devices import AnyFuture, Cancelled, failed_by
from .world import World

SAME_MOMENT = 1e-9  # relative to the time since the start; rounding errors are smaller


class Scheduled(NamedTuple):
    """An entry of the clock's heap: at ``time``, it calls ``callback(future)``."""

    time: float
    number: int  # in the order of scheduling
    future: AnyFuture
    callback: Callable[[AnyFuture], None]


@dataclass(slots=True)
class Progress:
    """The progress of an operation.

    ``steps``: those that have not ended. ``done``, ``error``: the result at the end.
    ``spent``: how long the steps that have ended took, in seconds. ``since``: when the
    first of ``steps`` began; None while it waits for its stage. ``end``: when the
    device finished the operation.
    """

    steps: deque[Step]
    done: Performed
    error: Exception | None
    spent: float = 0.0
    since: float | None = None
    end: float | None = None

    def share_spent(self, now: float) -> float:
        """The share of its computing time that has passed."""
        total = self.spent + sum(step.seconds for step in self.steps)
        spent = self.spent
        if self.since is not None:
            spent += now - self.since
        return spent / (total or 1.0)  # it may take no time at all


class Stages:
    """Queues for the devices that draft and target share.

    A stage computes one step at a time, first come, first served. ``StageLocks`` keeps
    worker processes in the same order.
    """

    def __init__(self) -> None:
        self._queues: dict[int, deque[AnyFuture]] = {}

    def enter(self, stage: int, future: AnyFuture) -> bool:
        """Queues ``future`` for a stage; returns whether it has the stage at once."""
        queue = self._queues.setdefault(stage, deque())
        queue.append(future)
        return queue[0] is future

    def leave(self, stage: int, future: AnyFuture) -> AnyFuture | None:
        """Releases a stage, or stops waiting for it; returns its new holder, if any."""
        queue = self._queues[stage]
        had_it = queue[0] is future
        queue.remove(future)
        return queue[0] if had_it and queue else None


class Virtual(World):
    """A simulated clock; deterministic to the last digit.

    ``models``: device name -> model. ``latency``: the durations of operations.
    ``cancel``, ``opened``: see World.
    """

    kind = "virtual"

    @checked
    def __init__(
        self,
        models: Mapping[str, Model],
        latency: Latency,
        *,
        cancel: str = "immediate",
        opened: Any = None,
    ):
        super().__init__(tuple(models), cancel, opened)
        self.models = dict(models)
        self.latency = latency
        for model in models.values():
            self.context = min(self.context, model.context)
        self._sequence = count()
        self._zero()

    @property
    def now(self) -> float:
        return self._now

    @property
    def vocab(self) -> int:
        return int(self.models[self.target.name].vocab)

    @property
    def cost_ratio(self) -> CostRatio:
        return CostRatio.known(self.latency.c)

    @property
    def drafts_per_target_pass(self) -> float:
        return self.latency.drafts_per_target_pass()

    def _make_ready(self) -> None:
        """Drops operations that an interrupt left unfinished: nothing computes them."""
        for name in self.devices:
            self._running[name] = None
            self._queue[name].clear()

    def _zero(self) -> None:
        self._now = 0.0
        self._heap: list[Scheduled] = []
        self._progress: dict[AnyFuture, Progress] = {}
        self._stages = Stages()
        # The time of a message between the controller and each device.
        self._message_seconds = {
            name: self.latency.message_to(name) for name in self.devices
        }

    def _start(self, future: AnyFuture) -> None:
        error = None
        try:
            done = perform(future.op, self.models[future.device], self.run)
        except Exception as raised:  # to be raised when the method waits
            done = NOTHING
            error = failed_by(future.device, future.op, raised)
        steps = self.latency.steps(future.device, future.op, done.kept, done.fed)
        self._carry_out(future, steps, done, error)

    def _carry_out(
        self,
        future: AnyFuture,
        steps: Sequence[Step],
        done: Performed,
        error: Exception | None = None,
    ) -> None:
        """Schedules an operation's ``steps``, and its result: ``done`` or ``error``."""
        self._progress[future] = Progress(deque(steps), done, error)
        if self._message_seconds[future.device]:
            future.sent = self._now
        self._send(future, self._arrive)

    def _send(self, future: AnyFuture, callback: Callable[[AnyFuture], None]) -> None:
        """Calls ``callback(future)`` when a message to or from its device arrives."""
        message = self._message_seconds[future.device]
        if message:
            self._schedule(self._now + message, future, callback)
        else:
            callback(future)

    def _arrive(self, future: AnyFuture) -> None:
        """Called when the question reaches the device."""
        future.start = self._now
        self._queue_step(future)

    def _queue_step(self, future: AnyFuture) -> None:
        """Begins the operation's first step, once its stage is free."""
        stage = self._progress[future].steps[0].stage
        if stage is None or self._stages.enter(stage, future):
            self._begin_step(future)

    def _begin_step(self, future: AnyFuture) -> None:
        progress = self._progress[future]
        progress.since = self._now
        ends = self._now + progress.steps[0].seconds
        self._schedule(ends, future, self._end_step)

    def _leave_step(self, future: AnyFuture) -> None:
        """Removes the operation's first step, and frees its stage."""
        progress = self._progress[future]
        progress.since = None
        step = progress.steps.popleft()
        if step.stage is not None:
            following = self._stages.leave(step.stage, future)
            if following is not None:
                self._begin_step(following)

    def _schedule(
        self, time: float, future: AnyFuture, callback: Callable[[AnyFuture], None]
    ) -> None:
        heappush(self._heap, Scheduled(time, next(self._sequence), future, callback))

    def _step(self) -> None:
        time, _, future, callback = heappop(self._heap)
        if self._running[future.device] is not future:
            return  # it was aborted, and its device is doing something else
        self._now = time
        callback(future)

    def _end_step(self, future: AnyFuture) -> None:
        """Called when the operation's first step ends."""
        progress = self._progress[future]
        if progress.end is not None:
            return  # it was stopped earlier
        progress.spent += progress.steps[0].seconds
        self._leave_step(future)
        if progress.steps and progress.error is None:
            self._queue_step(future)
        else:
            self._answer(future)

    def _answer(self, future: AnyFuture) -> None:
        """Sends the device's answer: it has finished the operation."""
        self._progress[future].end = self._now
        self._send(future, self._receive)

    def _receive(self, future: AnyFuture) -> None:
        """Called when the answer reaches the controller."""
        if self._message_seconds[future.device]:
            future.received = self._now
        progress = self._progress.pop(future)
        assert progress.end is not None, "the device is done with it"
        self._finish(future, progress.done, progress.end, progress.error)

    def _end_moment(self) -> None:
        moment_ends = self._now * (1 + SAME_MOMENT)
        while self._heap and self._heap[0].time <= moment_ends:
            self._step()

    def _abort(self, future: AnyFuture) -> None:
        self._send(future, self._stop)

    def _stop(self, future: AnyFuture) -> None:
        """Called when the message to stop reaches the device."""
        progress = self._progress[future]
        if progress.end is not None:
            return  # the device is done, and its answer is on the way
        progress.done = self._until_now(future)
        progress.error = Cancelled("cancelled")
        self._leave_step(future)
        self._answer(future)

    def _until_now(self, future: AnyFuture) -> Performed:
        """Cuts an operation short; returns what it has computed until now.

        Nothing of an aborted pass stays cached.
        """
        progress = self._progress[future]
        done = NOTHING
        if progress.error is None:
            share = progress.share_spent(self._now)
            done = future.op.until(progress.done, share)
        self.models[future.device].cut(done.kept + done.fed)
        return done
