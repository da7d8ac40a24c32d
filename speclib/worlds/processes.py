"""Real devices: one worker process per device, and the wall-clock.

The models are real, or emulated: then cheap models compute the tokens, and every
operation lasts as long as a latency file says.

Workers start once, from a fork server that has the heavy imports preloaded, and serve
many requests. Each holds at most one operation. What else is queued stays here, so a
result is read before its buffer is written again. Small messages go through pipes: a
text only as far as its worker lacks it, and of greedy rows only their tokens. Other
distributions go through shared memory that has no name, so nothing is left behind
however a process ends.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from multiprocessing.connection import wait
from statistics import median
from typing import Any

import numpy as np

from speclib.arguments import Count, Seconds, checked
from speclib.core.sampling import Coins, Rows, Sampler
from speclib.core.text import Text, TextSender
from speclib.data.latency import Durations, Latency
from speclib.data.pairs import Pair
from speclib.models import factory, preflight
from speclib.operations.operation import Raw
from speclib.operations.propose import Propose
from speclib.operations.score import Score

from . import cost_ratio, kept_ratios
from .cost_ratio import CostRatio, Trial
from .devices import AnyFuture, Cancelled, DeviceLost, device_names
from .stages import StageLocks
from .worker import STOP, Array, Certain, Failure, Question, Reply, device
from .worker_process import CONTEXT, Worker, dismiss
from .world import World

BUFFERED_ROWS = 128  # distributions that fit a worker's shared memory
BYTES_PER_ENTRY = 8

# How c is measured: texts of so many tokens; a few trials that do not count, of which
# the first one prefills; and how many tokens the draft writes beside a target pass.
TEXT_LENGTH = 16
UNCOUNTED_TRIALS = 4
DRAFTED_AT_FIRST = 4
DRAFTED_AT_MOST = 32


class Processes(World):
    """``pair`` on real devices: a draft and ``servers`` targets.

    ``cancel``: see World. Stopped "immediate", an operation still ends its layer, and
    on a GPU everything that the GPU was told. ``timeout``: seconds that an operation
    may take before its device counts as hung; ``start_timeout``: the same for building
    a model. ``emulate``: a latency; then undilated models compute the tokens, and every
    operation lasts as long as it says. ``remeasure``: measure c = t_target / t_draft
    anew, and keep that, even where an earlier run has kept it (see ``cost_ratio``).

    Raises DeviceLost naming the device and the cause. A lost worker is replaced when
    the next request begins, and so is one whose message an interrupt cut. Use it as a
    context manager, or ``close()`` it.
    """

    @checked
    def __init__(
        self,
        pair: Pair,
        *,
        servers: Count = 1,
        cancel: str = "after-op",
        dtype: str = "auto",
        emulate: Latency | Durations | None = None,
        timeout: Seconds = 60.0,
        start_timeout: Seconds = 300.0,
        remeasure: bool = False,
    ):
        factory.check_dtype(dtype)
        super().__init__(device_names(servers), cancel)
        # Two vocabularies, a model that no method can run, a missing GPU or no room for
        # it: these fail here and not in a worker.
        factory.tokenizer(pair)
        place = factory.place(pair)
        if emulate is None:
            preflight.check(pair, place, dtype, servers)
        else:
            preflight.check_gpus(pair, place, servers)

        self.kind = "measured" if emulate is None else "emulated"
        self.emulate = emulate
        self.pair = pair
        self.dtype = dtype
        self.context = factory.context(pair)
        self.datastore = factory.datastore(pair)
        self.timeout = timeout
        self.start_timeout = start_timeout
        self.remeasure = remeasure
        self._vocab = factory.vocab(pair)

        shares_devices = isinstance(emulate, Latency) and emulate.shared is not None
        self._locks = StageLocks() if shares_devices else None
        self._workers: dict[str, Worker] = {}
        self._shared: dict[str, Any] = {}  # where each worker leaves its rows
        self._senders: dict[str, TextSender] = {}  # what each has of the text
        self._asked: dict[
            str, AnyFuture
        ] = {}  # what each was sent and has not answered
        weakref.finalize(self, dismiss, self._workers)
        self._zero()
        self._start_missing_workers()

    # -- workers -----------------------------------------------------------------------
    def _start_missing_workers(self) -> None:
        """Starts them all at once, and waits until they are ready."""
        missing = [name for name in self.devices if name not in self._workers]
        try:
            for name in missing:
                self._start_worker(name)
            for name in missing:
                answer = self._receive(name, self.start_timeout, "start_timeout")
                if isinstance(answer, Failure):
                    raise DeviceLost(
                        f"device {name!r} could not build {self.pair.name!r}: "
                        f"{answer.cause}"
                    )
        except BaseException:
            self.close()
            raise

    def _start_worker(self, name: str) -> None:
        role, index = self.devices[name].role, self.devices[name].index
        ranks = 1 if self.emulate else factory.ranks(self.pair, role, index)
        shared = CONTEXT.RawArray("b", BUFFERED_ROWS * self.vocab * BYTES_PER_ENTRY)
        self._shared[name] = shared
        self._senders[name] = TextSender()
        self._workers[name] = Worker(
            name,
            self.pair,
            device,
            name,
            role,
            index,
            shared,
            self.dtype,
            self.emulate,
            self._locks,
            ranks=ranks,
            patience=max(1.0, self.timeout / 2),
        )

    def _receive(self, name: str, timeout: float, setting: str = "timeout") -> Any:
        """The next message of a worker, or DeviceLost saying how it was lost."""
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
        return self._vocab

    def _zero(self) -> None:
        self._origin = time.perf_counter()

    def begin(self, prompt: Sequence[int], **request: Any) -> None:
        self._drain()
        self._start_missing_workers()
        super().begin(prompt, **request)

    def _text_of_log(self) -> Text:
        return Text(self._log, len(self._log))

    def _drain(self) -> None:
        """Leaves every device idle.

        An interrupt may have made it unknown what a worker was asked; such workers are
        dropped.
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
        """Sends its worker an operation, and of the text what the worker lacks.

        A broken pipe is noticed when the reply is awaited. Where an interrupt cuts this
        short, ``_asked`` lacks the future: the worker is dropped with the next request,
        and what it has of the text does not matter any more.
        """
        worker = self._workers[future.device]
        sender = self._senders[future.device]
        operation = replace(future.op, text=())
        text = sender.pack(future.op.text)
        with contextlib.suppress(ConnectionError):
            worker.pipe.send(Question(operation, text, self.request))
            sender.note_sent(future.op.text, text)

    def _abort(self, future: AnyFuture) -> None:
        """Its worker looks for this between layers, then answers with what it has."""
        if future.device in self._workers:
            with contextlib.suppress(ConnectionError):
                self._workers[future.device].pipe.send(STOP)

    def _step(self) -> None:
        """Waits for the next reply of any busy device, and takes it in."""
        busy = [future for future in self._running.values() if future is not None]
        for future in busy:
            if future.device not in self._workers:
                self._lose(future, DeviceLost(f"device {future.device!r} is gone"))
                return

        answering = self._wait_for_one(busy)
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
            self._take_failure(answering, reply)
        else:
            self._take_reply(answering, reply)

    def _wait_for_one(self, busy: list[AnyFuture]) -> AnyFuture | None:
        """The future whose worker says something or ends; None if the oldest hangs."""
        future_of_source: dict[Any, AnyFuture] = {}
        for future in busy:
            worker = self._workers[future.device]
            for source in (worker.pipe, *worker.sentinels):
                future_of_source[source] = future

        patience = _oldest(busy).start + self.timeout - self.now
        ready = wait(list(future_of_source), max(0.0, patience))
        return future_of_source[ready[0]] if ready else None

    def _give_up_on_oldest(self, busy: list[AnyFuture]) -> None:
        """Nothing came in time: the device that has worked longest counts as hung."""
        oldest = _oldest(busy)
        worker = self._workers.pop(oldest.device)
        worker.stop(0.0)
        rank = " of rank 0" if worker.followers else ""  # it would name another one
        error = DeviceLost(
            f"device {oldest.device!r} of pair {self.pair.name!r} hung: no answer"
            f"{rank} in {self.timeout:g} s; it was stopped. Slow hardware: "
            "Processes(timeout=...)"
        )
        self._lose(oldest, error)

    def _take_failure(self, future: AnyFuture, failure: Failure) -> None:
        """An operation raised in its worker."""
        if self._workers[future.device].followers:  # they may be at different places
            self._workers.pop(future.device).stop(0.0)
        error = DeviceLost(
            f"device {future.device!r} failed in {future.op.name}: {failure.cause}"
        )
        self._lose(future, error)

    def _take_reply(self, future: AnyFuture, reply: Reply) -> None:
        """An operation ended, or was stopped: then there are no rows."""
        error = Cancelled("cancelled") if reply.rows is None else None
        rows = self._rows_of(reply, future.device)
        has_result = error is None or reply.small is not None
        raw = Raw(reply.small, rows) if has_result else None

        future.start = reply.start - self._origin
        end = reply.end - self._origin
        self._finish(future, raw, end, reply.kept, reply.fed, error, reply.overrun)

    def _rows_of(self, reply: Reply, device: str) -> Rows:
        """A reply's rows; none where the operation was stopped."""
        if isinstance(reply.rows, Certain):
            return reply.rows.read(self.vocab)
        if isinstance(reply.rows, Array):
            return reply.rows.read(self._shared[device])
        return np.empty(0) if reply.rows is None else reply.rows

    def _lose(self, future: AnyFuture, error: DeviceLost) -> None:
        self._asked.pop(future.device, None)
        self._finish(future, None, self.now, 0, 0, error=error)

    # -- latencies ---------------------------------------------------------------------
    @cached_property
    def cost_ratio(self) -> CostRatio:
        """c of the emulated passes; else as an earlier run has kept it, or measured.

        What is measured on an undisturbed machine is kept for later runs, see
        ``kept_ratios``.
        """
        if self.emulate is not None:
            return CostRatio.known(self.emulate.c)

        key = kept_ratios.key_of(self.pair, self.dtype, len(self.targets))
        if key is None:
            return self._measure_cost_ratio()
        if self.remeasure:
            return kept_ratios.measure_anew(key, self._measure_cost_ratio)
        return kept_ratios.load_or_measure(key, self._measure_cost_ratio)

    @property
    def latency(self) -> Durations:
        """Seconds of a forward pass of one token: the emulated ones, or measured."""
        if self.emulate is not None:
            return self.emulate
        return Latency.ratio(self.ratio, self.cost_ratio.target_seconds)

    def _measure_cost_ratio(self) -> CostRatio:
        """c as passes show it that are made now; the request that ran is over."""
        prompt = (1,) * TEXT_LENGTH
        self.begin(prompt, sampler=Sampler(), coins=Coins(), limit=1)
        uncounted = []
        for _ in range(UNCOUNTED_TRIALS):
            uncounted.append(self._take_trial(DRAFTED_AT_FIRST))

        # As many drafts as fit beside a target pass: then both sides work all the time.
        estimate = cost_ratio.read(uncounted[1:])
        drafted = min(cost_ratio.nearest_count(estimate.value), DRAFTED_AT_MOST)
        began = self.now
        measured = cost_ratio.measure(
            lambda: self._take_trial(drafted), lambda: self.now - began
        )
        self.end()
        return measured

    def _take_trial(self, drafted: int) -> Trial:
        """One pass of every target, beside ``drafted`` passes of the draft.

        The text is always the same, so that each pass is fed its last token alone.
        """
        earlier = len(self._events)
        drafting = self.submit("draft", Propose(self.text, drafted))
        scoring = [self.submit(t.name, Score(self.text)) for t in self.targets]
        self.all(drafting, *scoring)

        target_seconds = []
        for event in self._events[earlier:]:
            if event.device == "draft":
                draft_seconds = event.dur / drafted
            else:
                target_seconds.append(event.dur)
        return Trial(target=median(target_seconds), draft=draft_seconds)

    def close(self) -> None:
        """Ends the workers."""
        dismiss(self._workers)


def _oldest(busy: list[AnyFuture]) -> AnyFuture:
    """What a device has worked on longest."""
    return min(busy, key=lambda future: future.start)
