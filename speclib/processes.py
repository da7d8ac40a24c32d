"""Real devices: one worker process per device, wall-clock; the models real, or emulated.

Workers start once (a fork server with the heavy imports preloaded) and serve many requests. Each
holds at most one operation; what else is queued stays here, so a result is read before its buffer
is written again. Small messages go through pipes, distributions through shared memory that has no
name, so nothing is left behind however a process ends. Works from a script (no ``__main__`` guard
needed), a notebook kernel and papermill.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import time
from functools import cached_property
from importlib.util import find_spec
from multiprocessing.connection import wait
from statistics import median
from types import ModuleType

from .latency import Curve, Latency
from .operations import Propose, Score
from .pairs import Pair
from .tokens import Coins, Sampler
from .worker import Array, Failure, serve
from .world import DeviceLost, Future, World

ROWS = 64                   # distributions that fit a worker's buffer


class Worker:
    """A running worker process and its ends of pipe and shared memory."""

    def __init__(self, pair: Pair, role: str, dtype: str, emulate: Latency | None):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["speclib.worker"] if pair.target.is_toy or not find_spec("torch")
            else ["speclib.worker", "speclib.models.hf", "speclib.models.dilate"])
        self.shared = context.RawArray("b", ROWS * pair.vocab * 8)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, name=f"speclib-{role}", daemon=True,
                                       args=(theirs, self.shared, pair, role, dtype, emulate))
        with no_main():
            self.process.start()
        theirs.close()

    def stop(self, patience: float = 1.0) -> None:
        """Closes the pipe, which ends an idle worker; kills one that does not end."""
        self.pipe.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextlib.contextmanager
def no_main():
    """Hides the user's script while a worker starts, so that it is not run again in there."""
    real, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = real


class Processes(World):
    """``pair`` on real devices. ``timeout``: seconds an operation may take before its device
    counts as hung; ``start_timeout``: the same for building a model. ``emulate``: a latency; then
    the undilated models compute the tokens, and every operation lasts as long as it says.

    Raises DeviceLost naming the device and the cause; a lost worker is replaced when the next
    request begins. Use as a context manager, or ``close()``.
    """

    def __init__(self, pair: Pair, *, dtype: str = "auto", emulate: Latency | None = None,
                 timeout: float = 60.0, start_timeout: float = 300.0):
        super().__init__(("draft", "target"), "after-op")
        self.kind = "measured" if emulate is None else "emulated"
        self.emulate = emulate
        _ = pair.tokenizer                      # two vocabularies fail here, not in a worker
        self.pair, self.dtype, self.context = pair, dtype, pair.context
        self.timeout, self.start_timeout = timeout, start_timeout
        self._workers: dict[str, Worker] = {}
        self._zero()
        self._staff()

    def _staff(self) -> None:
        """Starts the workers that are missing, all at once, and waits until they are ready."""
        missing = [name for name in self.devices if name not in self._workers]
        for name in missing:
            self._workers[name] = Worker(self.pair, name, self.dtype, self.emulate)
        try:
            for name in missing:
                answer = self._receive(name, self.start_timeout)
                if isinstance(answer, Failure):
                    raise DeviceLost(f"device {name!r} could not build {self.pair.name!r}: "
                                     f"{answer.cause}")
        except BaseException:
            self.close()
            raise

    def _receive(self, name: str, timeout: float):
        """The next message of a worker, or DeviceLost saying how it was lost."""
        worker = self._workers[name]
        ready = wait([worker.pipe, worker.process.sentinel], timeout)
        with contextlib.suppress(EOFError, OSError):
            if worker.pipe in ready or worker.pipe.poll():
                return worker.pipe.recv()
        if not ready:
            worker.process.kill()
        worker.process.join(5)
        code = worker.process.exitcode
        cause = f"process ended with exit code {code}" if ready else f"no answer in {timeout:g} s"
        del self._workers[name]
        worker.stop()
        raise DeviceLost(f"device {name!r} of pair {self.pair.name!r} was lost: {cause}")

    # -- the clock --------------------------------------------------------------------------
    @property
    def now(self) -> float:
        return time.perf_counter() - self._origin

    def _zero(self) -> None:
        self._origin = time.perf_counter()

    def begin(self, prompt, **request) -> None:
        self._staff()
        super().begin(prompt, **request)

    def _start(self, future: Future) -> None:
        worker = self._workers.get(future.device)
        if worker is not None:
            with contextlib.suppress(BrokenPipeError):  # noticed when its reply is awaited
                worker.pipe.send((future.op, self.request))

    def _step(self) -> None:
        """Waits for the next reply of any busy device."""
        busy = [f for f in self._running.values() if f is not None]
        lost = [f for f in busy if f.device not in self._workers]
        if lost:
            return self._lose(lost[0], DeviceLost(f"device {lost[0].device!r} is gone"))
        pipes = {self._workers[f.device].pipe: f for f in busy}
        sentinels = {self._workers[f.device].process.sentinel: f for f in busy}
        ready = wait([*pipes, *sentinels], self.timeout)
        future = next((f for source, f in [*pipes.items(), *sentinels.items()] if source in ready),
                      busy[0])
        try:
            reply = self._receive(future.device, 0.0 if ready else 0.001)
        except DeviceLost as error:
            return self._lose(future, error if ready else DeviceLost(
                f"device {future.device!r} of pair {self.pair.name!r} hung: no answer in "
                f"{self.timeout:g} s; it was stopped. Slow hardware: Processes(timeout=...)"))
        if isinstance(reply, Failure):
            return self._lose(future, DeviceLost(f"device {future.device!r} failed in "
                                                 f"{future.op.name}: {reply.cause}"))
        rows = reply.rows
        if isinstance(rows, Array):
            rows = rows.read(self._workers[future.device].shared)
        value = rows if reply.tokens is None else (reply.tokens, rows)
        future.start = reply.start - self._origin
        self._finish(future, value, reply.end - self._origin, reply.kept, reply.fed,
                     overrun=reply.overrun)

    def _lose(self, future: Future, error: DeviceLost) -> None:
        self._finish(future, None, self.now, 0, 0, error=error)

    # -- latencies --------------------------------------------------------------------------
    @property
    def ratio(self) -> float:
        return self.latency.c

    @cached_property
    def latency(self) -> Latency:
        """Seconds of one forward pass of one token: the emulated ones, or measured now, as medians
        while both are busy."""
        if self.emulate is not None:
            return self.emulate
        self.begin((1,) * 16, sampler=Sampler(), coins=Coins(), limit=1)
        runs, text = {"draft": [], "target": []}, self.text
        for i in range(9):
            text = text + (1 + i % 2,)
            futures = {"target": self.submit("target", Score(text)),
                       "draft": self.submit("draft", Propose(text, 4))}
            self.all(*futures.values())
        for event in self.end().operations[4:]:
            runs[event.device].append(event.dur / (4 if event.op == "propose" else 1))
        return Latency(*(Curve(((1, median(runs[d])),)) for d in ("draft", "target")), "measured")

    def close(self) -> None:
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()
