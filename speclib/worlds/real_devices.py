"""Real devices in wall-clock time, with any kind of message passing.

The models are real or emulated. If they are emulated, cheap models compute the tokens,
and every operation takes the time that a latency file specifies.

Workers start once and serve many requests. Each holds at most one operation; the rest
of the queue stays in this process. Messages are small: they contain only the part of a
text that the worker lacks, and only the tokens of greedy rows.

A subclass decides what a worker is: a process on this machine (``processes``), or an
actor in a cluster (``cluster``).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from speclib.arguments import Patience, checked
from speclib.core.sampling import Coins, Rows, Sampler
from speclib.core.text import TextSender
from speclib.data.latency import Latency
from speclib.data.pairs import Pair
from speclib.models.loading import check_dtype
from speclib.models.open_pair import OpenPair, open_pair
from speclib.operations.operation import NOTHING, Operation, Output, Performed
from speclib.operations.propose import Propose
from speclib.operations.score import Score

from . import cost_ratio
from .cost_ratio import CostRatio, Trial
from .devices import (
    AnyFuture,
    Cancelled,
    DeviceFailed,
    DeviceLost,
    Servers,
    device_names,
    failed,
)
from .owner import Owner
from .performer import Certain, Failure, Question, Reply
from .world import World

TEXT_LENGTH = 16  # the length of the text on which c is measured, in tokens
PATIENCE = 0.5  # seconds that dismissed workers have to end by themselves


class AnyWorker(Protocol):
    """Performs the operations of one device, in another process."""

    @property
    def has_followers(self) -> bool:
        """Whether further processes help to compute its model."""
        ...

    @property
    def signs(self) -> list[Any]:
        """Objects that become ready when it answers, or one of its processes ends."""
        ...

    def ask(self, question: Question) -> None:
        """Sends an operation. If the worker ended, ``receive`` raises DeviceLost."""
        ...

    def interrupt(self) -> None:
        """Tells the worker that the current operation is no longer wanted."""
        ...

    def receive(self, timeout: float, setting: str = "timeout") -> Any:
        """Waits for its next message.

        Raises DeviceLost with the cause if none arrives within ``timeout`` seconds, or
        none can arrive any more. ``setting``: the argument that sets the timeout.
        """
        ...

    @property
    def pids(self) -> tuple[int, ...]:
        """The IDs of its processes, each on the machine that runs it."""
        ...

    def let_go(self) -> None:
        """Makes it end once it is idle."""
        ...

    def stop(self, patience: float) -> None:
        """Ends it, by force if that takes more than ``patience`` seconds."""
        ...


W = TypeVar("W", bound=AnyWorker)


class RealDevices(World, Generic[W]):
    """``pair`` on real devices: a draft and ``servers`` targets.

    ``cancel``: see World. With "immediate", a stopped operation still finishes its
    layer, and on a GPU every kernel that was launched. ``timeout``: seconds that an
    operation may take before its device counts as hung; ``start_timeout``: the same for
    building a model. ``emulate``: a latency to emulate, if any. Undilated models then
    compute the tokens, and every operation takes the time that the latency specifies.

    Raises DeviceLost naming the device and the cause. A lost worker is replaced when
    the next request begins, and so is a worker if an interrupt cut off a message to it.
    Use the world as a context manager, or ``close()`` it.

    A subclass is one way to reach workers. It provides ``_prepare``, ``_start_worker``,
    ``_wait`` and, if replies do not contain the rows, ``_find_rows``.
    """

    opened: OpenPair

    @checked
    def __init__(
        self,
        pair: Pair | OpenPair,
        *,
        servers: Servers = 1,
        cancel: str = "after-op",
        dtype: str = "auto",
        emulate: Latency | None = None,
        timeout: Patience = 60.0,
        start_timeout: Patience = 300.0,
    ):
        check_dtype(dtype)
        # A pair with two vocabularies, or a model that no method can run, fails here
        # and not in a worker.
        super().__init__(device_names(servers), cancel, open_pair(pair))
        self.pair = self.opened.pair
        self.kind = "measured" if emulate is None else "emulated"
        self.emulate = emulate
        self.dtype = dtype
        self.timeout = timeout
        self.start_timeout = start_timeout
        self._prepare()

        self._workers: dict[str, W] = {}
        self._senders: dict[str, TextSender] = {}  # what text each worker has
        # The operation that each worker was sent and has not answered yet.
        self._asked: dict[str, AnyFuture] = {}
        # Why a device has no worker until the next request.
        self._broken: dict[str, DeviceFailed] = {}
        weakref.finalize(self, _dismiss_own, self.owner, self._workers)
        self._zero()
        try:
            self._start_missing_workers()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Prepares for starting workers.

        Raises BadValue, before models are read, for a pair that cannot run here.
        """
        raise NotImplementedError

    # -- workers -----------------------------------------------------------------------
    def _start_missing_workers(self) -> None:
        """Starts all missing workers at once, and waits until they are ready."""
        missing = self._missing()
        try:
            for name in missing:
                self._broken.pop(name, None)
                self._senders[name] = TextSender()
                self._workers[name] = self._start_worker(name)
            for name in missing:
                answer = self._receive(name, self.start_timeout, "start_timeout")
                if isinstance(answer, Failure):
                    raise DeviceLost(
                        f"device {name!r} could not build {self.pair.name!r}: "
                        f"{answer.cause}"
                    )
                self._note_ready(name, answer)
        except BaseException:
            dismiss(self._workers)  # the next request tries again
            raise

    @property
    def processes(self) -> dict[str, tuple[int, ...]]:
        """The IDs of each device's processes, rank 0 first.

        Devices that were lost or have not started yet are missing.
        """
        workers = dict(self._workers)  # it may change in another thread
        return {name: worker.pids for name, worker in workers.items()}

    def _missing(self) -> list[str]:
        """The devices without a worker, in the order in which to start them."""
        return [name for name in self.devices if name not in self._workers]

    def _start_worker(self, name: str) -> W:
        """Starts a device's worker, whose first message states whether it is ready."""
        raise NotImplementedError

    def _note_ready(self, name: str, answer: Any) -> None:
        """Called when a model is built; ``answer``: its worker's first message."""

    def _receive(self, name: str, timeout: float, setting: str = "timeout") -> Any:
        """Waits for a worker's next message. Raises DeviceLost with the cause."""
        try:
            return self._workers[name].receive(timeout, setting)
        except DeviceLost as error:
            del self._workers[name]
            raise DeviceLost(
                f"device {name!r} of pair {self.pair.name!r} was lost: {error}"
            ) from None

    # -- the clock ---------------------------------------------------------------------
    @property
    def now(self) -> float:
        return time.perf_counter() - self._origin

    @property
    def vocab(self) -> int:
        return self.opened.vocab

    def _zero(self) -> None:
        self._origin = time.perf_counter()

    def _make_ready(self) -> None:
        super()._make_ready()
        self._start_missing_workers()

    def _drain(self) -> None:
        """Makes every device idle.

        If an interrupt left it unclear what a worker was asked to do, ends that worker.
        """
        for name, future in self._running.items():
            if future is not self._asked.get(name):
                if name in self._workers:
                    self._workers.pop(name).stop(0.0)
                self._running[name] = None
                self._asked.pop(name, None)
        super()._drain()

    def _start(self, future: AnyFuture) -> None:
        if future.device in self._workers:
            self._ask(future)
        self._asked[future.device] = future

    def _ask(self, future: AnyFuture) -> None:
        """Sends a worker an operation, and the part of the text that it lacks.

        If an interrupt cuts this short, the future is missing from ``_asked``. The next
        request then ends the worker, so it does not matter which text the worker has.
        """
        sender = self._senders[future.device]
        operation = replace(future.op, text=())
        text = sender.pack(future.op.text)
        future.sent = self.now
        self._workers[future.device].ask(Question(operation, text, self.run))
        sender.note_sent(future.op.text, text)

    def _abort(self, future: AnyFuture) -> None:
        """Interrupts its worker, which notices between two layers, and then answers."""
        if future.device in self._workers:
            self._workers[future.device].interrupt()

    def _step(self) -> None:
        """Waits for the next reply from any busy device, and handles it."""
        busy = [future for future in self._running.values() if future is not None]
        for future in busy:
            if future.device not in self._workers:
                why = ": this world was closed" if self.owner.is_closed else ""
                is_gone = DeviceLost(f"device {future.device!r} is gone{why}")
                self._lose(future, self._broken.get(future.device, is_gone))
                return

        patience = _oldest(busy).start + self.timeout - self.now
        answering = self._wait_for_one(busy, max(0.0, patience))
        if answering is None:
            self._give_up_on_oldest(busy)
            return
        self._asked.pop(answering.device, None)
        try:
            reply = self._receive(answering.device, 0.0)
        except DeviceLost as error:
            self._lose(answering, error)
            return
        if isinstance(reply, Failure):
            self._handle_failure(answering, reply)
        else:
            self._handle_reply(answering, reply)

    def _wait_for_one(self, busy: list[AnyFuture], patience: float) -> AnyFuture | None:
        """Waits for a worker to answer or end; returns its future, or None if none did.

        ``patience``: the most seconds to wait.
        """
        future_of_sign = {}
        for future in busy:
            for sign in self._workers[future.device].signs:
                future_of_sign[sign] = future
        ready = self._wait(list(future_of_sign), patience)
        return future_of_sign[ready[0]] if ready else None

    @staticmethod
    def _wait(signs: list[Any], patience: float) -> list[Any]:
        """Waits until some ``signs`` are ready; returns them, or [] if none is."""
        raise NotImplementedError

    def _give_up_on_oldest(self, busy: list[AnyFuture]) -> None:
        """Treats the device that has worked longest as hung: no reply came in time."""
        oldest = _oldest(busy)
        worker = self._workers.pop(oldest.device)
        worker.stop(0.0)
        # Rank 0 itself reports any other rank that hangs.
        rank = " from rank 0" if worker.has_followers else ""
        error = DeviceLost(
            f"device {oldest.device!r} of pair {self.pair.name!r} hung: no answer"
            f"{rank} in {self.timeout:g} s; it was stopped. If the hardware is slow, "
            f"increase {type(self).__name__}(timeout=...)"
        )
        self._lose(oldest, error)

    def _handle_failure(self, future: AnyFuture, failure: Failure) -> None:
        """Handles an error that an operation raised in its worker.

        The worker is no longer usable if its device has several processes, which may
        now be in different states, or if a GPU's error is lasting. The next request
        then gets a new worker. The device counts as lost only if one of its processes
        is lost: any other error would recur.
        """
        error = failed(future.device, future.op, failure.cause)
        worker = self._workers[future.device]
        if worker.has_followers or failure.is_lasting:
            del self._workers[future.device]
            worker.stop(0.0)
        if failure.has_lost_rank:
            self._lose(future, DeviceLost(str(error)))
            return

        if future.device not in self._workers:
            self._broken[future.device] = error  # even if this operation was cancelled
        self._lose(future, error)

    def _handle_reply(self, future: AnyFuture, reply: Reply) -> None:
        """Handles the reply for an operation that ended or was stopped."""
        error = Cancelled("cancelled") if reply.was_stopped else None
        performed = self.with_rows(reply.performed, future.device)
        future.received = self.now
        future.start, end = self._times_of(reply, future)
        self._finish(future, performed, end, error, reply.overrun)

    def _times_of(self, reply: Reply, future: AnyFuture) -> tuple[float, float]:
        """The start and end of an operation, in seconds since the request began."""
        return reply.start - self._origin, reply.end - self._origin

    def with_rows(self, performed: Performed, device: str) -> Performed:
        """Restores the rows in ``performed``, which a message may have replaced."""
        if performed.output is None:
            return performed
        small, rows = performed.output
        if isinstance(rows, Certain):
            rows = rows.read(self.vocab)
        elif not isinstance(rows, np.ndarray):
            rows = self._find_rows(rows, device)
        return performed._replace(output=Output(small, rows))

    def _find_rows(self, left: Any, device: str) -> Rows:
        """Finds the rows that a worker left; ``left``: what ``LeaveRows`` returned."""
        raise NotImplementedError

    def _lose(self, future: AnyFuture, error: DeviceFailed | DeviceLost) -> None:
        self._asked.pop(future.device, None)
        self._finish(future, NOTHING, self.now, error)

    # -- latencies ---------------------------------------------------------------------
    @cached_property
    def cost_ratio(self) -> CostRatio:
        """c of the emulated latency, or else measured with a few passes.

        The passes are made once, before the first request that needs c, and also warm
        up the workers.
        """
        if self.emulate is not None:
            return CostRatio.known(self.emulate.c)

        prompt = (1,) * TEXT_LENGTH
        self.begin(prompt, sampler=Sampler(), coins=Coins(), limit=1)
        try:
            return cost_ratio.measure(self._take_trial)
        finally:
            self.give_up()

    def _take_trial(self, drafted: int) -> Trial:
        """Times one pass of every target and, at the same time, ``drafted`` drafts.

        The text is always the same, so each pass feeds only its last token.
        """
        operations: dict[str, Operation] = {"draft": Propose(self.text, drafted)}
        for target in self.targets:
            operations[target.name] = Score(self.text)
        for name, operation in operations.items():
            operations[name] = self._as_timed(operation)

        answers = self.compute_at_once(operations)
        seconds = {name: taken for name, (_, taken) in answers.items()}
        draft = seconds.pop("draft")
        return Trial(target=median(seconds.values()), draft=draft / drafted)

    def _as_timed(self, operation: Operation) -> Operation:
        """Puts an operation that is timed for c into the form that requests use."""
        return operation

    def compute_at_once(
        self, operations: Mapping[str, Operation]
    ) -> dict[str, tuple[Any, float]]:
        """Makes devices compute at the same time.

        Returns each device's result, and how long it took, in seconds.
        """
        earlier = len(self._events)
        futures = {name: self.submit(name, op) for name, op in operations.items()}
        self.all(*futures.values())
        seconds = {event.device: event.dur for event in self._events[earlier:]}
        return {name: (f.value, seconds[name]) for name, f in futures.items()}

    def close(self) -> None:
        """Ends the workers."""
        super().close()
        _dismiss_own(self.owner, self._workers)


def _dismiss_own(owner: Owner, workers: dict[str, Any]) -> None:
    """Ends ``workers``, but not in a forked child: they belong to its parent."""
    if owner.is_here:
        dismiss(workers)


def dismiss(workers: dict[str, Any]) -> None:
    """Stops all workers at once.

    The dict is emptied first, so that an interrupt leaves no half-stopped worker in it.
    """
    leaving = [workers.pop(name) for name in list(workers)]
    for worker in leaving:
        worker.let_go()
    until = time.monotonic() + PATIENCE
    for worker in leaving:
        worker.stop(max(0.0, until - time.monotonic()))


def _oldest(busy: list[AnyFuture]) -> AnyFuture:
    """The operation that has been running longest."""
    return min(busy, key=lambda future: future.start)
