"""Runs a function over many items on every core, in processes of our own.

They end with us, whatever ends us, and are missed when they are killed. Knows nothing
of what is computed, and keeps nothing: what must survive is for the function to save.

Why not loky (3.7.0 was tried): when this process is killed, loky's workers compute on
and then wait for ever. An interrupt while they start prints tracebacks. To mend both
one has to hold back signals and to give each worker a lifeline, which is all that this
module does.
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
    """Worker processes, one per core, which stay until they are closed.

    Starting one takes a moment, and what it imports takes seconds. A context manager.
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
        """Run ``function`` on each item; yields the results as they finish.

        ``function`` must be a name of our packages: the workers import its module only,
        never the user's script. Raises SpeclibError once a worker dies.
        """
        try:
            with interrupts_held_back(), no_main():
                futures = [self._pool.submit(function, item) for item in items]
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise SpeclibError(
                "a process that computes cells died: it was killed, by the system "
                "perhaps, for lack of memory. Finished cells are stored: run again to "
                "go on"
            ) from error

    def close(self) -> None:
        """Stop all workers at once, whatever they do."""
        # Cut the lifeline first: an executor alone would finish what is under way.
        self._our_end.close()
        self._pool.shutdown()
        self._workers_end.close()


def on_every_core(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result]:
    """Run ``function`` on each item in worker processes of their own, see ``Cores``.

    Closing the iterator stops all workers at once.
    """
    with Cores() as cores:
        yield from cores.run(function, items)


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let an interrupt wait until the block has ended.

    A pool that is interrupted while it starts its processes forgets them: nobody waits
    for them, and they print tracebacks when they miss what they were started with.
    Starting takes milliseconds. Interrupts come to the main thread only.
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
    """A worker's start: learn where the cache lies, leave interrupts to the parent.

    The worker ends, whatever it does, when the other end of ``lifeline`` closes: when
    the parent closes it, or when the parent is no more.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    paths.CACHE = cache_folder


def _end_with(lifeline: Connection) -> None:
    """Wait until the lifeline's other end closes, then end this process at once."""
    lifeline.poll(None)
    os._exit(1)
