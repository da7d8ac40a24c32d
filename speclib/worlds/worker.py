"""What runs in a worker process: a device, which builds a model and performs operations until its
pipe closes; or anything else that answers messages.

Messages are small; distributions go through shared memory. Timestamps are of the system-wide
monotonic clock, so the controller can lay them on one axis. An emulated device computes its tokens
with a cheap model, then waits until the operation's latency is over. Knows no method.

``STOP`` says that the operation under way is wanted no more: a device looks for it between tokens,
between layers and while it waits. Sent before that operation's answer is read, it is always ahead
of the next one in the pipe; so what comes too late to stop anything is skipped and stops nothing.
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
from functools import partial
from typing import NamedTuple

import numpy as np

from speclib.errors import SpeclibError
from speclib.models import factory
from speclib.operations.operation import perform, reached

STOP = None
NO_MEMORY = "out of memory|allocate memory|not enough memory"  # as torch says it


class Array(NamedTuple):
    """Rows left in shared memory."""

    shape: tuple[int, ...]
    dtype: str

    def read(self, shared) -> np.ndarray:
        """A copy: the worker overwrites the buffer with its next operation."""
        size = int(np.prod(self.shape))
        return np.frombuffer(shared, self.dtype, size).reshape(self.shape).copy()


class Reply(NamedTuple):
    """An operation's result: worker clock, KV counts, drafted tokens (or None), rows (None, if it
    was stopped)."""

    start: float
    end: float
    kept: int
    fed: int
    tokens: tuple[int, ...] | None
    rows: Array | np.ndarray | None
    overrun: bool = False  # emulated: computing took longer than the latency


class Failure(NamedTuple):
    """What went wrong, as text: exceptions of a worker's libraries need not be picklable."""

    cause: str


class Rank(NamedTuple):
    """Which of the ``size`` processes of one device this is. The first has ``pipes`` to the others;
    all wait ``patience`` seconds for one that is late."""

    number: int
    size: int
    patience: float
    pipes: tuple = ()


def serve(pipe, start, *args) -> None:
    """The process's main: ``start(*args)`` returns what answers (message, pipe). Sends None when it
    is ready, then one answer per message but STOP; a Failure for what raises."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts the whole group
    end_with_parent()
    try:
        answer = attempt(start, *args)
        failed = isinstance(answer, Failure)
        pipe.send(answer if failed else None)
        while not failed:
            message = pipe.recv()
            if message is not STOP:
                pipe.send(attempt(answer, message, pipe))
    except (EOFError, ConnectionError):
        return  # the controller is gone


def end_with_parent() -> None:
    """This process ends when the one that wants it does, even in the middle of an operation."""

    def follow():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def attempt(function, *args):
    """What ``function`` returns, or why it raised."""
    try:
        return function(*args)
    except Exception as error:
        mine = isinstance(error, SpeclibError)
        cause = str(error) if mine else f"{type(error).__name__}: {error}"
        if isinstance(error, MemoryError) or re.search(NO_MEMORY, cause):
            cause += " (out of memory: free some, or give a smaller model or dtype='bfloat16')"
        return Failure(cause)


def device(
    pair,
    name: str,
    role: str,
    index: int,
    shared,
    dtype: str,
    latency=None,
    rank: Rank | None = None,
):
    """What performs (operation, request) on the model of device ``name``, the ``index``-th of its
    ``role``. ``latency``: emulate. Of several ranks the first does, and tells the others what to
    do; they answer to it alone."""
    places = factory.place(pair).of(role, index)
    pin(places[rank.number :][:1] if rank else places, pair.place.threads)
    model = factory.build(
        pair, role, dtype, dilated=latency is None, index=index, rank=rank
    )
    if rank and rank.number:
        return model
    seconds = None if latency is None else partial(latency.seconds, name)
    return partial(_answer, model, shared, seconds)


class Stopping:
    """Whether STOP has come for the operation under way; asked with ``seconds``, it waits for it
    that long."""

    def __init__(self, pipe):
        self.pipe, self.come = pipe, False

    def __call__(self, seconds: float = 0.0) -> bool:
        # select counts in microseconds; the pipe's own poll rounds up to milliseconds
        if not self.come and select.select([self.pipe], [], [], max(0.0, seconds))[0]:
            self.pipe.recv()
            self.come = True
        return self.come


def _answer(model, shared, seconds, message, pipe) -> Reply:
    op, request = message
    model.stopped = stopped = Stopping(pipe)
    start, overrun = time.perf_counter(), False
    done = perform(op, model, request)
    if seconds and not stopped.come:
        lasts = seconds(op, done.kept, done.fed)
        left = start + lasts - time.perf_counter()
        overrun = left < 0 < lasts  # 0, as of a prefill left out, cannot be outlasted
        if stopped(left):
            done = reached(
                op, done, (time.perf_counter() - start) / lasts if lasts else 1.0
            )
            model.cut(done.kept + done.fed)
    tokens, rows = (None, done.value) if op.name == "score" else done.value
    rows = None if stopped.come else _put(rows, shared)
    return Reply(start, time.perf_counter(), done.kept, done.fed, tokens, rows, overrun)


def _put(rows: np.ndarray, shared) -> Array | np.ndarray:
    if rows.nbytes > len(shared):
        return rows  # larger than foreseen: through the pipe
    np.frombuffer(shared, rows.dtype, rows.size)[:] = rows.ravel()
    return Array(rows.shape, rows.dtype.str)


def pin(places: tuple[str, ...], threads: int) -> None:
    """Binds this process to its ``core:N`` places, counted among the cores it may use."""
    cores = [int(p.removeprefix("core:")) for p in places if p.startswith("core:")]
    if cores and hasattr(os, "sched_setaffinity"):  # not on macOS
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[c % len(allowed)] for c in cores})
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
