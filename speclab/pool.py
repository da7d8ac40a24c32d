"""Runs a function over many items, with one worker process per core.

The workers end when this process ends for any reason, and the pool notices if a worker
dies. The pool stores no results: the function itself must save what should survive.

We tried loky 3.7.0 first. When this process is killed, loky's workers finish computing
and then wait forever, and an interrupt while they start prints tracebacks. Fixing both
requires delayed signals and a lifeline for each worker, which are all that this module
adds to the standard library's pool.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from speclib import machine, paths
from speclib.errors import SpeclibError
from speclib.worlds.worker import CONTEXT, no_main, serving

Item = TypeVar("Item")
Result = TypeVar("Result")


class Cores:
    """Worker processes, one per core, which live until they are closed.

    A worker starts in a moment, but its imports take seconds. Use as a context manager.
    """

    def __init__(self) -> None:
        serving()
        self._workers_end, self._our_end = CONTEXT.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(
            machine.cores(), CONTEXT, _settle_in, (paths.CACHE, self._workers_end)
        )

    def __enter__(self) -> Cores:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[Result]:
        """Run ``function`` on each item, and yield each result when it is ready.

        ``function`` must be defined in our packages: the workers import only its
        module, never the user's script. Raises SpeclibError if a worker dies.
        """
        try:
            with interrupts_held_back(), no_main():
                futures = [self._pool.submit(function, item) for item in items]
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise SpeclibError(
                "a process that computes cells died; perhaps the system killed it for "
                "lack of memory. Finished cells are stored: run again to continue"
            ) from error

    def close(self) -> None:
        """Stop all workers at once, even in the middle of an item."""
        # Cut the lifeline first: an executor alone would finish the running items.
        self._our_end.close()
        self._pool.shutdown()
        self._workers_end.close()


def on_every_core(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result]:
    """Run ``function`` on each item in new worker processes (see ``Cores``).

    Closing the iterator stops all workers at once.
    """
    with Cores() as cores:
        yield from cores.run(function, items)


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Delay an interrupt until the block has ended.

    A pool that is interrupted while it starts its processes loses track of them. They
    are never joined, and they print tracebacks because their start-up data is missing.
    The delay is short, since starting takes milliseconds. Only the main thread receives
    interrupts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = []
    handler = signal.signal(signal.SIGINT, lambda *_: interrupts.append(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        signal.raise_signal(signal.SIGINT)


def _settle_in(cache_folder: Path, lifeline: Connection) -> None:
    """Prepare a worker: set its cache folder, and leave interrupts to the parent.

    The worker ends at once when the other end of ``lifeline`` closes, because the
    parent closed it or has ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    paths.CACHE = cache_folder


def _end_with(lifeline: Connection) -> None:
    """Wait until the lifeline's other end closes, then end this process at once."""
    lifeline.poll(None)
    os._exit(1)
