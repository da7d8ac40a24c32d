"""Finding live processes, starting one that receives interrupts, and ending one."""

from __future__ import annotations

import resource
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import psutil

from helpers.patience import HANG, wait_until
from speclib.worlds.processes import Processes

# Options of subprocess.Popen: a new session, which receives interrupts even if a shell
# runs the tests in the background.
OWN_SESSION = {
    "start_new_session": True,
    "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
}


class ProcessStatus(NamedTuple):
    """A process as /proc/<pid>/stat describes it."""

    state: str  # one letter: R(unning), S(leeping), T (stopped), Z(ombie), ...
    parent: int
    group: int
    session: int


DEAD = ("Z", "X")
NO_PROCESS = ProcessStatus("Z", 0, 0, 0)


def process_status(pid: int) -> ProcessStatus:
    """Returns the status of a process, or a zombie's if no such process exists."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ProcessLookupError):
        return NO_PROCESS

    # The second field is the command in parentheses, which may contain spaces.
    _, _, after_command = line.rpartition(")")
    state, parent, group, session, *_ = after_command.split()
    return ProcessStatus(state, int(parent), int(group), int(session))


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    if Path("/proc").is_dir():
        return process_status(pid).state not in DEAD

    ps = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(ps, capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def living_processes() -> dict[int, ProcessStatus]:
    """Returns the status of every live process, by its id."""
    living = {}
    for folder in Path("/proc").glob("[0-9]*"):
        status = process_status(int(folder.name))
        if status.state not in DEAD:
            living[int(folder.name)] = status
    return living


def living_children(parent: int) -> list[int]:
    """Returns the live children of ``parent``."""
    living = living_processes()
    return sorted(pid for pid, status in living.items() if status.parent == parent)


def living_in_session(session: int) -> list[int]:
    """Returns a session's live processes; its id is the pid of its first process."""
    living = living_processes()
    return sorted(pid for pid, status in living.items() if status.session == session)


def own_processes_except(known: set[psutil.Process]) -> set[psutil.Process]:
    """Returns this process's descendants, except ``known`` ones and their descendants.

    The nodes of a cluster that other tests use may start processes at any time.
    """
    own = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process not in known and known.isdisjoint(process.parents()):
                own.add(process)
    return own


def gone(pids: Iterable[int], patience: float = HANG) -> bool:
    """Waits for all of these processes to end, and returns whether they did."""
    pids = list(pids)
    return wait_until(lambda: not any(alive(pid) for pid in pids), patience)


def all_ended(processes: Iterable[BaseProcess], patience: float = HANG) -> bool:
    """Waits for all of these processes to end, and returns whether they did."""
    for process in processes:
        process.join(patience)
        if process.is_alive():
            return False
    return True


@contextmanager
def killed_at_the_end(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """Kills a process at the end of the block, even after an error."""
    with process:  # closes its pipes and waits for it
        try:
            yield process
        finally:
            process.kill()


def worker_processes(world: Processes, device: str) -> list[BaseProcess]:
    """Returns the processes of a world's device, one per rank."""
    process_of_pid = {process.pid: process for process in active_children()}
    return [process_of_pid[pid] for pid in world.processes[device]]


def with_files_of_at_most(size: int) -> dict[str, Callable[[], None]]:
    """Returns options of subprocess.Popen that limit files to ``size`` bytes.

    Writing more fails, as on a full disk.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return {"preexec_fn": limit}
