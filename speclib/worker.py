"""What runs in a worker process: a device, which builds a model and performs operations until its
pipe closes; or anything else that answers messages.

Messages are small; distributions go through shared memory. Timestamps are of the system-wide
monotonic clock, so the controller can lay them on one axis. An emulated device computes its tokens
with a cheap model, then waits until the operation's latency is over. Knows no method.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from functools import partial
from typing import NamedTuple

import numpy as np

from .errors import SpeclibError
from .operations import perform

NO_MEMORY = "out of memory|allocate memory|not enough memory"    # as torch says it


class Array(NamedTuple):
    """Rows left in shared memory."""

    shape: tuple[int, ...]
    dtype: str

    def read(self, shared) -> np.ndarray:
        """A copy: the worker overwrites the buffer with its next operation."""
        size = int(np.prod(self.shape))
        return np.frombuffer(shared, self.dtype, size).reshape(self.shape).copy()


class Reply(NamedTuple):
    """An operation's result: worker clock, KV counts, drafted tokens (or None), rows."""

    start: float
    end: float
    kept: int
    fed: int
    tokens: tuple[int, ...] | None
    rows: Array | np.ndarray
    overrun: bool = False       # emulated: computing took longer than the latency


class Failure(NamedTuple):
    """What went wrong, as text: exceptions of a worker's libraries need not be picklable."""

    cause: str


def serve(pipe, start, *args) -> None:
    """The process's main: ``start(*args)`` returns what answers a message. Sends None when it is
    ready, then one answer per message; a Failure for what raises."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # Jupyter interrupts the whole group
    end_with_parent()
    try:
        answer = attempt(start, *args)
        failed = isinstance(answer, Failure)
        pipe.send(answer if failed else None)
        while not failed:
            pipe.send(attempt(answer, pipe.recv()))
    except (EOFError, ConnectionError):
        return                                          # the controller is gone


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


def device(pair, role: str, shared, dtype: str, latency=None):
    """What performs (operation, request) on the model of ``role``. ``latency``: emulate."""
    pin(getattr(pair.place, role), pair.place.threads)
    model = pair.build(role, dtype, dilated=latency is None)
    wait = None if latency is None else partial(_wait, latency, role)
    return partial(_answer, model, shared, wait)


def _answer(model, shared, wait, message) -> Reply:
    op, request = message
    start = time.perf_counter()
    done = perform(op, model, request)
    tokens, rows = (None, done.value) if op.name == "score" else done.value
    rows = _put(rows, shared)
    overrun = wait(start, op, done) if wait else False
    return Reply(start, time.perf_counter(), done.kept, done.fed, tokens, rows, overrun)


def _wait(latency, role: str, start: float, op, done) -> bool:
    """Sleeps until the operation's latency is over; True if it is over already. A latency of 0, a
    prefill that a paper leaves out, cannot be outlasted."""
    seconds = latency.seconds(role, op, done.kept, done.fed)
    left = start + seconds - time.perf_counter()
    time.sleep(max(0.0, left))
    return left < 0 < seconds


def _put(rows: np.ndarray, shared) -> Array | np.ndarray:
    if rows.nbytes > len(shared):
        return rows                                     # larger than foreseen: through the pipe
    np.frombuffer(shared, rows.dtype, rows.size)[:] = rows.ravel()
    return Array(rows.shape, rows.dtype.str)


def pin(places: tuple[str, ...], threads: int) -> None:
    """Binds this process to its ``core:N`` places, counted among the cores it may use."""
    cores = [int(p.removeprefix("core:")) for p in places if p.startswith("core:")]
    if cores and hasattr(os, "sched_setaffinity"):      # not on macOS
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[c % len(allowed)] for c in cores})
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
