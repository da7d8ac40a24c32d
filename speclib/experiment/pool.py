"""A function over many items on every core: processes that end with us, and are missed when killed.

Knows nothing of what it computes, and keeps nothing: what must survive is for the
function to save.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from speclib import paths
from speclib.errors import SpeclibError
from speclib.worlds.worker_process import CONTEXT, no_main, serving

from . import machine


def on_every_core(function: Callable, items: Iterable) -> Iterator:
    """Results of ``function``, a name of this package, as they finish, from worker processes. They
    import its module only, never the user's script. Raises SpeclibError once one of them dies."""
    serving()
    lifeline, ours = CONTEXT.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        machine.cores(), CONTEXT, _settle, (paths.CACHE, lifeline)
    )
    try:
        with no_main():
            running = [pool.submit(function, item) for item in items]
        for future in as_completed(running):
            yield future.result()
    except BrokenProcessPool as error:
        raise SpeclibError(
            "a process that computes cells died: it was killed, by the system "
            "perhaps, for lack of memory. Finished cells are kept: run again to go "
            "on"
        ) from error
    finally:
        ours.close()  # an executor alone would finish what is under way
        pool.shutdown()
        lifeline.close()


def _settle(cache_folder, lifeline) -> None:
    """A worker's start: interrupts are the parent's business, and so is where the cache lies. It
    ends, whatever it does, when the other end of ``lifeline`` closes: by the parent, or with it."""

    def follow():
        lifeline.poll(None)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow, daemon=True).start()
    paths.CACHE = cache_folder
