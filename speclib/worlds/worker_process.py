"""Processes of our own: started from a fork server that has the heavy imports preloaded, spoken to
through a pipe, and missed when they die or hang; they end when we do.

Works from a script (no ``__main__`` guard needed), a notebook kernel and papermill. Knows no
operation and no world; what a process does is ``worker``'s.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from itertools import chain
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from types import ModuleType

from speclib.data.pairs import Pair
from speclib.errors import SpeclibError

from .devices import DeviceLost
from .worker import Rank, serve

CONTEXT = multiprocessing.get_context("forkserver")
STARTING = threading.RLock()  # an interrupt may leave it held: its own thread can go on
PATIENCE = 0.5  # seconds in which an idle worker ends once its pipe is closed
MODELS = [
    "speclib.models.hf",
    "speclib.models.dilate",
    "transformers.models.llama.modeling_llama",
]  # or every worker would import it, 3 s
ROOM = 70  # bytes: systems give 103 or more, multiprocessing takes 32


class Worker:
    """A running process that answers messages (see ``worker.serve``) about ``pair``. With more than
    one of ``ranks`` there are others that answer to it, and wait ``patience`` seconds for each
    other; each is started with its Rank."""

    def __init__(
        self,
        name: str,
        pair: Pair,
        start,
        *args,
        ranks: int = 1,
        patience: float = 30.0,
    ):
        serving(heavy=not pair.target.is_toy)
        self.pipe, theirs = CONTEXT.Pipe()
        links = [CONTEXT.Pipe() for _ in range(1, ranks)]
        pipes = (tuple(ours for ours, _ in links), *((),) * len(links))
        self.process, *self.followers = self.processes = [
            CONTEXT.Process(
                target=serve,
                name=f"speclib-{name}",
                daemon=True,
                args=(
                    end,
                    start,
                    pair,
                    *args,
                    *([Rank(i, ranks, patience, pipes[i])] if links else ()),
                ),
            )
            for i, end in enumerate([theirs, *(end for _, end in links)])
        ]
        try:
            with no_main():
                for process in self.processes:
                    process.start()
        except (OSError, EOFError) as error:
            raise DeviceLost(
                f"no process could be started: {error or 'the fork server ended'}; "
                "the next request tries again"
            ) from error
        except BaseException:
            self.pipe.close()  # a process that is there already ends by this
            raise
        finally:
            for end in (theirs, *chain(*links)):
                end.close()

    def receive(self, timeout: float, setting: str = "timeout"):
        """The next message. Raises DeviceLost with the cause when none can come any more, or none
        came in ``timeout`` seconds (the argument ``setting``); the process is gone then."""
        until = time.monotonic() + timeout
        ready = wait([self.pipe, *self.sentinels], timeout)
        if any(
            process.exitcode == 0 for process in self.followers
        ):  # the first will say why
            ready = wait(
                [self.pipe, self.process.sentinel], max(0.0, until - time.monotonic())
            )
        with contextlib.suppress(EOFError, OSError):
            if self.pipe in ready or self.pipe.poll():
                return self.pipe.recv()
        self.stop(PATIENCE if ready else 0.0)
        dead = [
            (i, p.exitcode) for i, p in enumerate(self.processes) if p.sentinel in ready
        ]
        rank, code = dead[0] if dead else (0, self.process.exitcode)
        which = f"rank {rank}'s process" if self.followers else "process"
        killed = (
            ": it was killed, by the system perhaps, for lack of memory"
            if code == -9
            else ""
        )
        raise DeviceLost(
            f"{which} ended with exit code {code}{killed}"
            if ready
            else f"no answer in {timeout:g} s; it was stopped. Slow hardware: give a "
            f"larger {setting}"
        )

    def stop(self, patience: float = PATIENCE) -> None:
        """Closes the pipe, which ends an idle worker; kills one that does not end."""
        self.pipe.close()
        try:
            self.process.join(patience)
        finally:
            for process in self.processes:
                process.kill()
            for process in self.processes:
                process.join()

    @property
    def sentinels(self) -> list[int]:
        """Ready when one of its processes has ended."""
        return [process.sentinel for process in self.processes]


def dismiss(workers: dict[str, Worker]) -> None:
    """Stops all workers at once and empties the dict first: an interrupt leaves no half-stopped
    worker in it."""
    leaving = [workers.pop(name) for name in list(workers)]
    for worker in leaving:
        worker.pipe.close()
    until = time.monotonic() + PATIENCE
    for worker in leaving:
        worker.stop(max(0.0, until - time.monotonic()))


def serving(heavy: bool = False) -> None:
    """Sees to it that a fork server runs; the first call decides whether it has torch imported, as
    for real models (``heavy``) and where we have it ourselves. Interrupts, which a terminal sends
    to all, are ours alone: the server starts with them blocked, and so do the processes it forks.
    Raises SpeclibError for too long a TMPDIR."""
    heavy = find_spec("torch") is not None if heavy else "torch" in sys.modules
    CONTEXT.set_forkserver_preload(
        [
            "speclib.worlds.forkserver_preload",
            "speclib.worlds.worker",
            "speclib.data.pairs",
            "speclib.models.toy",
            *(MODELS if heavy else ()),
        ]
    )
    resource_tracker.ensure_running()  # the server's own need; starting it unblocks them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    except OSError as error:
        if "AF_UNIX" not in str(error):
            raise
        folder = tempfile.gettempdir()
        raise SpeclibError(
            f"TMPDIR, {folder}, has {len(os.fsencode(folder))} bytes, too many for "
            f"the address of a socket in it: give one with at most {ROOM}, as in "
            "TMPDIR=/tmp"
        ) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def no_main():
    """Hides the user's script while a worker starts, so that it is not run again in there; one
    thread at a time, or the second would take the first one's blank for the script."""
    with STARTING:
        real, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = real
