"""Starts worker processes, exchanges messages with them, and detects their loss.

Workers come from a fork server with the heavy imports preloaded, answer messages
through a pipe, and end when this process does. One that dies or hangs is detected.

Workers can be started from a script (without a ``__main__`` guard), a notebook kernel
and papermill. This module does not depend on operations or worlds: ``performer``
contains the code that runs in a worker.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any
from weakref import WeakSet

from speclib.data.pairs import Pair
from speclib.errors import SpeclibError
from speclib.models import gpus
from speclib.models.loading import Rank

from .devices import DeviceLost
from .forkserver_preload import PARENT
from .performer import STOP, Question, serve

CONTEXT = multiprocessing.get_context("forkserver")
# Reentrant: an interrupt may leave it locked, and its thread can then enter again.
STARTING = threading.RLock()
PATIENCE = 0.5  # seconds for an idle worker to end after its pipe is closed
SIGKILLED = -9

PRELOADED = [
    "speclib.worlds.forkserver_preload",
    "speclib.worlds.performer",
    "speclib.data.pairs",
    "speclib.models.toy",
]
PRELOADED_FOR_REAL_MODELS = [  # otherwise every worker imports them: 3 s each
    "speclib.models.hf",
    "speclib.models.dilate",
    "transformers.models.llama.modeling_llama",
]

OURS: WeakSet[Any] = WeakSet()  # the processes that were started here


class Worker:
    """A running process that answers messages about ``pair`` (see ``performer.serve``).

    ``start(pair, *args)`` runs in it and returns the function that answers. With
    several ``ranks``, further processes answer to this one. They wait at most
    ``patience`` seconds for each other, and each is started with its Rank:

        controller ── pipe ── rank 0 ──┬── pipe ── rank 1
                                       └── pipe ── rank 2
    """

    def __init__(
        self,
        name: str,
        pair: Pair,
        start: Callable[..., Any],
        *args: Any,
        ranks: int = 1,
        patience: float = 30.0,
    ):
        refuse_daemon()
        serving(heavy=not pair.target.is_toy)
        self.pipe, their_end = CONTEXT.Pipe()
        links = [CONTEXT.Pipe() for _ in range(1, ranks)]
        first_ends = tuple(first for first, _ in links)
        other_ends = [their_end, *(other for _, other in links)]

        self.processes = []
        for number, pipe in enumerate(other_ends):
            rank = []
            if ranks > 1:
                to_others = first_ends if number == 0 else ()
                rank = [Rank(number, ranks, patience, to_others)]
            process = CONTEXT.Process(
                target=serve,
                name=f"speclib-{name}",
                daemon=True,
                args=(pipe, start, pair, *args, *rank),
            )
            self.processes.append(process)
            OURS.add(process)
        self.process = self.processes[0]
        self.followers = self.processes[1:]
        self.has_followers = bool(self.followers)
        self._start(their_end, links)

    def _start(
        self, their_end: Connection, links: list[tuple[Connection, Connection]]
    ) -> None:
        """Starts all processes, and closes their ends of the pipes here."""
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
            self.pipe.close()  # ends a process that has started already
            raise
        finally:
            for end in (their_end, *chain(*links)):
                end.close()

    def ask(self, question: Question) -> None:
        """Sends an operation. If the worker ended, ``receive`` raises DeviceLost."""
        with contextlib.suppress(ConnectionError):
            self.pipe.send(question)

    def interrupt(self) -> None:
        """Tells the worker that the current operation is no longer wanted."""
        with contextlib.suppress(ConnectionError):
            self.pipe.send(STOP)

    def receive(self, timeout: float, setting: str = "timeout") -> Any:
        """Waits for the next message.

        Raises DeviceLost with the cause if none can arrive any more, or none arrives
        within ``timeout`` seconds. The process has then ended. ``setting``: the
        argument that sets the timeout.
        """
        until = time.monotonic() + timeout
        ready = wait(self.signs, timeout)
        if any(process.exitcode == 0 for process in self.followers):
            # A follower ended normally: the first rank will report why.
            still = max(0.0, until - time.monotonic())
            ready = wait([self.pipe, self.process.sentinel], still)
        with contextlib.suppress(EOFError, OSError):
            if self.pipe in ready or self.pipe.poll():
                return self.pipe.recv()

        self.stop(PATIENCE if ready else 0.0)
        if not ready:
            raise DeviceLost(
                f"no answer in {timeout:g} s; it was stopped. If the hardware is slow, "
                f"give a larger {setting}"
            )
        raise DeviceLost(self._how_it_ended(ready))

    def _how_it_ended(self, ready: list[Any]) -> str:
        """Describes which process ended, and how; ``ready``: the ready sentinels."""
        rank, ended = 0, self.process
        for number, process in enumerate(self.processes):
            if process.sentinel in ready:
                rank, ended = number, process
                break
        which = f"rank {rank}'s process" if self.has_followers else "process"
        why = ""
        if ended.exitcode == SIGKILLED:
            why = ": it was killed, perhaps by the system for lack of memory"
        return f"{which} ended with exit code {ended.exitcode}{why}"

    def let_go(self) -> None:
        """Closes the pipe, which ends an idle worker."""
        self.pipe.close()

    def stop(self, patience: float = PATIENCE) -> None:
        """Closes the pipe; kills the worker unless it ends in ``patience`` seconds."""
        self.let_go()
        try:
            self.process.join(patience)
        finally:
            for process in self.processes:
                process.kill()
            for process in self.processes:
                process.join()

    @property
    def pids(self) -> tuple[int, ...]:
        """The IDs of its processes that have started."""
        pids = (process.pid for process in self.processes)
        return tuple(pid for pid in pids if pid is not None)

    @property
    def signs(self) -> list[Any]:
        """Objects that become ready when it answers, or one of its processes ends."""
        return [self.pipe, *(process.sentinel for process in self.processes)]


def refuse_daemon() -> None:
    """Raises SpeclibError in a process that is not allowed to start others."""
    if multiprocessing.current_process().daemon:
        raise SpeclibError(
            f"{multiprocessing.current_process().name} is a daemonic process, as in "
            "multiprocessing.Pool, and cannot start worker processes: use "
            "concurrent.futures.ProcessPoolExecutor, or world='virtual'"
        )


def forget_workers() -> None:
    """Makes a forked child forget the workers and the fork server of its parent.

    On exit, the child would kill everything that multiprocessing has started, and it
    cannot get workers from a server that is not its own child.
    """
    started = getattr(multiprocessing.process, "_children")  # noqa: B009  (no type)
    started -= set(OURS)
    server = getattr(forkserver, "_forkserver")  # noqa: B009
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_pid = None
        server._forkserver_alive_fd = None
        server._forkserver_address = None


os.register_at_fork(after_in_child=forget_workers)


def serving(heavy: bool = False) -> None:
    """Makes sure that a fork server is running.

    The first call decides whether the server imports torch: it does for real models
    (``heavy``), or if this process has imported it. A terminal sends interrupts to all
    processes, but only this one handles them: the server and the processes that it
    forks start with interrupts blocked.
    """
    if heavy:
        with_torch = find_spec("torch") is not None
    else:
        with_torch = "torch" in sys.modules
    modules = PRELOADED + (PRELOADED_FOR_REAL_MODELS if with_torch else [])
    CONTEXT.set_forkserver_preload(modules)

    gpus.prepare_environment()  # the server and every worker inherit it
    resource_tracker.ensure_running()  # first, since its start unblocks signals
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ[PARENT] = str(os.getpid())
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop(PARENT, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)


@contextlib.contextmanager
def no_main() -> Iterator[None]:
    """Hides the user's script while a worker starts, so that it does not run there.

    Only one thread may do so at a time: a second thread would mistake the first one's
    empty module for the script.
    """
    with STARTING:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script
