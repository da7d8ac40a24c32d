"""The code that runs in a worker process.

A worker is a device: it builds a model and performs operations until its pipe closes.
Any other function that answers messages can run in a worker, too.

Messages are small: only the new part of a text is sent (see ``core.text``), and only
the tokens of one-hot rows. Other distributions are left where the controller can find
them: on a single machine, in shared memory. Timestamps come from the system-wide
monotonic clock, so the controller can put them on one axis. An emulated device computes
its tokens with a cheap model, and then waits until the operation's latency is over.

``STOP`` means that the current operation is no longer wanted. A device checks for it
between tokens, between layers and while it waits. STOP is sent before the operation's
answer is read, so it precedes the next operation in the pipe. If it arrives too late to
stop anything, it is skipped.

This module does not depend on any method.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from speclib.core.sampling import Rows, Tokens, certain
from speclib.core.text import TextMessage, TextReceiver
from speclib.data.latency import Latency, Step
from speclib.models import gpus
from speclib.models.loading import Rank, RankLost
from speclib.models.open_pair import open_pair
from speclib.operations.model import Model
from speclib.operations.operation import (
    DecodingRun,
    Operation,
    Output,
    Performed,
    perform,
)

from .devices import NO_MEMORY, cause_of
from .seated_models import SeatedModels, Together, passes_of
from .stage_locks import LOOK_EVERY, StageLocks

if TYPE_CHECKING:
    from speclib.core.settings import Role
    from speclib.data.pairs import Pair

STOP = None


# -- time ------------------------------------------------------------------------------
class Clock:
    """The machine's monotonic clock, which all its processes share.

    A worker takes it as an argument, so that a test can replace it.
    """

    def now(self) -> float:
        """Seconds since some fixed moment."""
        return time.perf_counter()

    def wait(self, pipe: Connection, seconds: float) -> bool:
        """Waits at most ``seconds`` for a message from ``pipe``.

        Returns whether one has arrived.
        """
        # select counts in microseconds; the pipe's own poll rounds up to milliseconds
        ready, _, _ = select.select([pipe], [], [], max(0.0, seconds))
        return bool(ready)


# -- messages --------------------------------------------------------------------------
class Array(NamedTuple):
    """Rows that are in shared memory."""

    shape: tuple[int, ...]
    dtype: str

    def read(self, shared: Any) -> np.ndarray:
        """Copies the rows, since the worker's next operation overwrites the buffer."""
        size = int(np.prod(self.shape))
        return np.frombuffer(shared, self.dtype, size).reshape(self.shape).copy()


class Certain(NamedTuple):
    """One-hot rows, sent as their tokens."""

    tokens: Tokens

    def read(self, vocab: int) -> Rows:
        """Restores the rows, [tokens, vocab]."""
        return certain(self.tokens, vocab)


class Question(NamedTuple):
    """A request to a device: an operation, with its text sent separately."""

    operation: Operation
    text: TextMessage
    run: DecodingRun


class Reply(NamedTuple):
    """The result of an operation.

    ``start``, ``end``: times on the worker's clock. ``performed``: its output contains
    the rows, or a message that replaces them; no rows if the operation ``was_stopped``.
    ``overrun``: on an emulated device, computing took longer than the latency.
    """

    start: float
    end: float
    performed: Performed
    was_stopped: bool = False
    overrun: bool = False


class Failure(NamedTuple):
    """The cause of an error, as text: some libraries' exceptions cannot be pickled.

    ``has_lost_rank``: another process of the same device has ended or hangs.
    """

    cause: str
    has_lost_rank: bool = False

    @property
    def is_lasting(self) -> bool:
        """Whether the process can no longer be used.

        After one of CUDA's own errors, for example an illegal access, every further
        CUDA call in that process fails. Running out of memory has no such effect.
        """
        lacks_memory = re.search(NO_MEMORY, self.cause)
        return "CUDA error" in self.cause and not lacks_memory


# Leaves an operation's rows where the controller can find them, and returns what the
# reply contains instead. If the reply itself is to contain the rows, returns the rows.
LeaveRows: TypeAlias = Callable[[Rows], Any]


# -- the process -----------------------------------------------------------------------
def serve(pipe: Connection, start: Callable[..., Any], *args: Any) -> None:
    """The main function of a worker process; see ``answer_messages``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts the whole group
    end_with_parent()
    answer_messages(pipe, start, *args)


def answer_messages(pipe: Connection, start: Callable[..., Any], *args: Any) -> None:
    """Answers the messages from ``pipe`` until the other end closes.

    ``start(*args)`` returns the function that answers (message, pipe). Once it has
    returned, None is sent, and then one answer for each message except STOP. If either
    function raises an error, the answer is a Failure.
    """
    try:
        answer = attempt(start, *args)
        has_failed = isinstance(answer, Failure)
        pipe.send(answer if has_failed else None)
        while not has_failed:
            message = pipe.recv()
            if message is not STOP:
                pipe.send(attempt(answer, message, pipe))
    except (EOFError, ConnectionError):
        return  # the controller is gone


def end_with_parent() -> None:
    """Ends this process when its parent ends, even in the middle of an operation."""

    def follow() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    """Calls ``function``; returns its result, or a Failure if it raises an error."""
    try:
        return function(*args)
    except Exception as error:
        return Failure(cause_of(error), isinstance(error, RankLost))


# -- a device --------------------------------------------------------------------------
@dataclass(frozen=True)
class DeviceSpec:
    """A description of a worker's device.

    ``index``: its number among the devices of its ``role``. ``latency``: the latency to
    emulate, if any. ``seats``: in a batch, the number of requests that it serves.
    """

    name: str
    role: Role
    index: int
    dtype: str
    latency: Latency | None = None
    seats: int = 0


def device(
    pair: Pair,
    spec: DeviceSpec,
    leave_rows: LeaveRows,
    locks: StageLocks | None = None,
    rank: Rank | None = None,
) -> Any:
    """Builds the model of a device; returns a callable that answers (question, pipe).

    ``locks``: for the stages that draft and target share. ``rank``: the rank of this
    process, if the device has several. The first performs the operations and tells the
    others what to do; they answer only to it.
    """
    opened = open_pair(pair)
    places = opened.place.of(spec.role, spec.index)
    gpus.prepare_environment()
    pin(places[rank.number :][:1] if rank else places, pair.place.threads)
    is_dilated = spec.latency is None
    if spec.seats:
        models = SeatedModels(
            opened, spec.role, spec.seats, spec.dtype, dilated=is_dilated
        )
        return partial(answer_together, models, spec)
    model = opened.build(
        spec.role, spec.dtype, dilated=is_dilated, index=spec.index, rank=rank
    )
    if rank and rank.number:
        return model
    return Performer(model, spec, leave_rows, locks)


class Stopping:
    """Checks whether STOP has arrived for the current operation."""

    def __init__(self, pipe: Connection, clock: Clock):
        self.pipe = pipe
        self.clock = clock
        self.has_come = False

    def __call__(self, seconds: float = 0.0) -> bool:
        """Waits for STOP, at most ``seconds``; returns whether it has arrived."""
        if not self.has_come and self.clock.wait(self.pipe, seconds):
            self.pipe.recv()
            self.has_come = True
        return self.has_come


class Performer:
    """Performs the operations of one device, with the latency that it emulates, if any.

    ``clock``: reads the time and waits; None: the machine's. See ``device`` for the
    other arguments.
    """

    def __init__(
        self,
        model: Model,
        spec: DeviceSpec,
        leave_rows: LeaveRows,
        locks: StageLocks | None = None,
        clock: Clock | None = None,
    ):
        self.model = model
        self.spec = spec
        self.leave_rows = leave_rows
        self.locks = locks
        self.clock = clock or Clock()
        self.texts = TextReceiver()

    def __call__(self, question: Question, pipe: Connection) -> Reply:
        """Performs the operation in ``question``."""
        text = self.texts.unpack(question.text)
        operation = replace(question.operation, text=text)
        run = question.run
        stopping = Stopping(pipe, self.clock)
        self.model.stopped = stopping

        start = self.clock.now()
        done = perform(operation, self.model, run)
        is_overrun = False
        if self.spec.latency is not None and not stopping.has_come:
            steps = self.spec.latency.steps(
                self.spec.name, operation, done.kept, done.fed
            )
            total = sum(step.seconds for step in steps)
            is_overrun = start + total < self.clock.now() and total > 0
            spent = self._spend(steps, start, stopping)
            if stopping.has_come:
                done = operation.until(done, spent / total if total else 1.0)
                self.model.cut(done.kept + done.fed)

        if stopping.has_come:
            self.model.wait_for_device()  # until its launched work has ended
        end = self.clock.now()
        output = done.output
        if output is not None and not stopping.has_come:
            rows = _rows_to_send(output, operation, run, self.leave_rows)
            output = Output(output.small, rows)
        elif output is not None:
            drafts = output.small  # drafted before it was stopped
            output = None if drafts is None else Output(drafts, np.empty(0))
        to_send = done._replace(output=output)
        return Reply(start, end, to_send, stopping.has_come, is_overrun)

    def _spend(self, steps: Sequence[Step], start: float, stopping: Stopping) -> float:
        """Waits until the ``steps`` are over, the first of which begins at ``start``.

        If another process is computing on a step's stage, the step begins when that
        process is done. Returns the seconds spent on steps until the end or STOP.
        """
        spent = 0.0
        begins = start
        for step in steps:
            locks, stage = self.locks, step.stage
            if locks is not None and stage is not None:
                asked = self.clock.now()
                if not locks.enter(stage, stopping):
                    return spent
                had_to_wait = self.clock.now() - asked > LOOK_EVERY
                if had_to_wait:
                    begins = self.clock.now()

            ends = begins + step.seconds
            was_stopped = stopping(ends - self.clock.now())
            if locks is not None and stage is not None:
                locks.leave(stage)
            if was_stopped:
                return spent + self.clock.now() - begins
            spent += step.seconds
            begins = ends
        return spent


def answer_together(
    models: SeatedModels, spec: DeviceSpec, question: Question, pipe: Connection
) -> Reply:
    """Performs the tasks of all seats in a batch, with an emulated latency, if any."""
    assert isinstance(question.operation, Together)
    tasks = question.operation.tasks
    clock = Clock()
    start = clock.now()
    outcomes = models.perform(tasks)
    if spec.latency is not None:
        passes = passes_of([task.operation for task in tasks], outcomes)
        ends = start + spec.latency.seconds_together(spec.name, passes)
        clock.wait(pipe, ends - clock.now())
    end = clock.now()

    to_send: list[Performed | Failure] = []
    for task, outcome in zip(tasks, outcomes, strict=True):
        if isinstance(outcome, Exception):
            to_send.append(Failure(cause_of(outcome)))
        elif outcome.output is not None:
            small, _ = outcome.output
            rows = _rows_to_send(
                outcome.output, task.operation, task.run, rows_in_reply
            )
            to_send.append(outcome._replace(output=Output(small, rows)))
    return Reply(start, end, Performed(Output(to_send, np.empty(0)), 0, 0))


def rows_in_reply(rows: Rows) -> Rows:
    """Leaves rows in the reply itself."""
    return rows


def _rows_to_send(
    output: Output, operation: Operation, run: DecodingRun, leave_rows: LeaveRows
) -> Any:
    """Converts the rows to the form in which the reply carries them."""
    if operation.gives_distributions and run.sampler.greedy:
        return Certain(tuple(output.rows.argmax(-1).tolist()))
    return leave_rows(output.rows)


def leave_in_memory(shared: Any, rows: Rows) -> Array | Rows:
    """Writes rows to memory ``shared`` with the controller, if they fit."""
    if rows.nbytes > len(shared):
        return rows  # they do not fit, so the reply contains them
    np.frombuffer(shared, rows.dtype, rows.size)[:] = rows.ravel()
    return Array(rows.shape, rows.dtype.str)


def pin(places: Sequence[str], threads: int) -> None:
    """Binds this process to its ``core:N`` places.

    ``N`` counts only the cores that the process may use. ``threads``: how many threads
    torch may use, if it is loaded.
    """
    cores = [int(p.removeprefix("core:")) for p in places if p.startswith("core:")]
    if cores and hasattr(os, "sched_setaffinity"):  # not on macOS
        allowed = sorted(os.sched_getaffinity(0))
        chosen = {allowed[core % len(allowed)] for core in cores}
        os.sched_setaffinity(0, chosen)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
