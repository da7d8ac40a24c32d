"""Real devices: one worker process per device, wall-clock; the models real, or emulated.

Workers start once (a fork server with the heavy imports preloaded) and serve many requests. Each
holds at most one operation; what else is queued stays here, so a result is read before its buffer
is written again. Small messages go through pipes, distributions through shared memory that has no
name, so nothing is left behind however a process ends.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from functools import cached_property
from multiprocessing.connection import wait
from statistics import median

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.data.pairs import Pair
from speclib.models import factory
from speclib.operations.propose import Propose
from speclib.operations.score import Score

from .devices import Cancelled, DeviceLost, Future, named
from .worker import STOP, Array, Failure, device
from .worker_process import CONTEXT, Worker, dismiss
from .world import World

ROWS = 128  # distributions that fit a worker's buffer


class Processes(World):
    """``pair`` on real devices: a draft and ``servers`` targets. ``cancel``: see World; stopped
    "immediate", an operation still ends its layer, on a GPU all that it was told. ``timeout``:
    seconds an operation may take before its device counts as hung; ``start_timeout``: the same for
    building a model. ``emulate``: a latency; then the undilated models compute the tokens, and
    every operation lasts as long as it says.

    Raises DeviceLost naming the device and the cause; a lost worker is replaced when the next
    request begins, and so is one whose message an interrupt cut. Use as a context manager, or
    ``close()``.
    """

    def __init__(
        self,
        pair: Pair,
        *,
        servers: int = 1,
        cancel: str = "after-op",
        dtype: str = "auto",
        emulate: Latency | None = None,
        timeout: float = 60.0,
        start_timeout: float = 300.0,
    ):
        super().__init__(named(servers), cancel)
        self.kind = "measured" if emulate is None else "emulated"
        self.emulate = emulate
        # Two vocabularies, or a device without a place, fail here and not in a worker.
        factory.tokenizer(pair)
        for device_ in self.devices.values():
            factory.place(pair).of(device_.role, device_.index)
        self.pair, self.dtype, self.context = pair, dtype, factory.context(pair)
        self.vocab, self.datastore = factory.vocab(pair), factory.datastore(pair)
        self.timeout, self.start_timeout = timeout, start_timeout
        self._workers: dict[str, Worker] = {}
        self._shared = {}  # per worker: where it leaves its rows
        self._asked: dict[
            str, Future
        ] = {}  # per worker: what it was sent and has not answered
        weakref.finalize(self, dismiss, self._workers)
        self._zero()
        self._staff()

    def _staff(self) -> None:
        """Starts the workers that are missing, all at once, and waits until they are ready."""
        missing = [name for name in self.devices if name not in self._workers]
        try:
            for name in missing:
                at, shared = (
                    self.devices[name],
                    CONTEXT.RawArray("b", ROWS * self.vocab * 8),
                )
                ranks = (
                    1 if self.emulate else factory.ranks(self.pair, at.role, at.index)
                )
                self._shared[name] = shared
                self._workers[name] = Worker(
                    name,
                    self.pair,
                    device,
                    name,
                    at.role,
                    at.index,
                    shared,
                    self.dtype,
                    self.emulate,
                    ranks=ranks,
                    patience=max(1.0, self.timeout / 2),
                )
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

    def _receive(self, name: str, *patience):
        """The next message of a worker, or DeviceLost saying how it was lost."""
        try:
            return self._workers[name].receive(*patience)
        except DeviceLost as error:
            del self._workers[name]
            raise DeviceLost(
                f"device {name!r} of pair {self.pair.name!r} was lost: {error}"
            ) from None

    # -- the clock --------------------------------------------------------------------------
    @property
    def now(self) -> float:
        return time.perf_counter() - self._origin

    def _zero(self) -> None:
        self._origin = time.perf_counter()

    def begin(self, prompt, **request) -> None:
        self._drain()
        self._staff()
        super().begin(prompt, **request)

    def _drain(self) -> None:
        """Leaves every device idle; drops those of which an interrupt made unknown what they were
        asked."""
        for name, future in self._running.items():
            if future is not self._asked.get(name):
                if name in self._workers:
                    self._workers.pop(name).stop(0.0)
                self._running[name] = None
                self._asked.pop(name, None)
        super()._drain()

    def _start(self, future: Future) -> None:
        worker = self._workers.get(future.device)
        if worker is not None:
            with contextlib.suppress(
                ConnectionError
            ):  # noticed when its reply is awaited
                worker.pipe.send((future.op, self.request))
        self._asked[future.device] = future

    def _abort(self, future: Future) -> None:
        """Its worker looks for this between tokens and layers, then answers with what it has."""
        if future.device in self._workers:
            with contextlib.suppress(ConnectionError):
                self._workers[future.device].pipe.send(STOP)

    def _step(self) -> None:
        """Waits for the next reply of any busy device."""
        busy = [f for f in self._running.values() if f is not None]
        lost = [f for f in busy if f.device not in self._workers]
        if lost:
            return self._lose(lost[0], DeviceLost(f"device {lost[0].device!r} is gone"))
        workers = {f: self._workers[f.device] for f in busy}
        sources = {s: f for f, w in workers.items() for s in (w.pipe, *w.sentinels)}
        oldest = min(busy, key=lambda f: f.start)
        ready = wait([*sources], max(0.0, oldest.start + self.timeout - self.now))
        if not ready:
            worker = self._workers.pop(oldest.device)
            worker.stop(0.0)
            rank = " of rank 0" if worker.followers else ""  # it would name another one
            return self._lose(
                oldest,
                DeviceLost(
                    f"device {oldest.device!r} of pair {self.pair.name!r} hung: no answer{rank} in "
                    f"{self.timeout:g} s; it was stopped. Slow hardware: Processes(timeout=...)"
                ),
            )
        future = sources[ready[0]]
        self._asked.pop(future.device, None)
        try:
            reply = self._receive(future.device, 0.0)
        except DeviceLost as error:
            return self._lose(future, error)
        if isinstance(reply, Failure):
            if self._workers[
                future.device
            ].followers:  # who may be at different places now
                self._workers.pop(future.device).stop(0.0)
            return self._lose(
                future,
                DeviceLost(
                    f"device {future.device!r} failed in "
                    f"{future.op.name}: {reply.cause}"
                ),
            )
        rows = reply.rows
        if isinstance(rows, Array):
            rows = rows.read(self._shared[future.device])
        error = Cancelled("cancelled") if rows is None else None
        value = rows if reply.tokens is None else (reply.tokens, () if error else rows)
        future.start = reply.start - self._origin
        self._finish(
            future,
            value,
            reply.end - self._origin,
            reply.kept,
            reply.fed,
            error,
            reply.overrun,
        )

    def _lose(self, future: Future, error: DeviceLost) -> None:
        self._asked.pop(future.device, None)
        self._finish(future, None, self.now, 0, 0, error=error)

    # -- latencies --------------------------------------------------------------------------
    @property
    def ratio(self) -> float:
        return self.latency.c

    @cached_property
    def latency(self) -> Latency:
        """Seconds of one forward pass of one token: the emulated ones, or measured now, as medians
        while all are busy."""
        if self.emulate is not None:
            return self.emulate
        self.begin((1,) * 16, sampler=Sampler(), coins=Coins(), limit=1)
        runs, text = {"draft": [], "target": []}, self.text
        for i in range(9):
            text = text + (1 + i % 2,)
            self.all(
                self.submit("draft", Propose(text, 4)),
                *(self.submit(target.name, Score(text)) for target in self.targets),
            )
        for event in self.end().operations[2 * len(self.devices) :]:
            role = self.devices[event.device].role
            runs[role].append(event.dur / (4 if role == "draft" else 1))
        return Latency(
            *(Curve(((1, median(runs[d])),)) for d in ("draft", "target")), "measured"
        )

    def close(self) -> None:
        dismiss(self._workers)
