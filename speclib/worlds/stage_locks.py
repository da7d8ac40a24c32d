"""Locks for devices that worker processes share: one computes, the others wait.

A device computes one step at a time, first come, first served, as with ``Stages`` on a
simulated clock. A process that is killed releases its locks.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import weakref
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any

LOOK_EVERY = 0.0002  # seconds between attempts to acquire a lock


class StageLocks:
    """Keeps worker processes in order, with locks on two bytes for each stage.

    The process that computes holds one byte, the next in line the other. So a process
    that releases a stage and asks for it again comes after one that is waiting. When a
    process ends, however it ends, the kernel releases its locks. A worker that receives
    this object at its start locks the same file.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)

    def __getstate__(self) -> Any:
        return reduction.DupFd(self._file)

    def __setstate__(self, state: Any) -> None:
        self._file = state.detach()

    def enter(self, stage: int, stopped: Callable[[float], bool]) -> bool:
        """Waits until this process has the stage; False if it was ``stopped``.

        ``stopped(seconds)`` waits at most that long, and returns whether the operation
        is no longer wanted.
        """
        computing, next_in_line = 2 * stage, 2 * stage + 1
        for byte in (next_in_line, computing):
            while not self._acquire(byte):
                if stopped(LOOK_EVERY):
                    self._release(next_in_line)
                    return False
        self._release(next_in_line)
        return True

    def leave(self, stage: int) -> None:
        """Releases the stage."""
        self._release(2 * stage)

    def _acquire(self, byte: int) -> bool:
        """Acquires a lock unless another process has it; returns whether it did."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError:
            return False
        return True

    def _release(self, byte: int) -> None:
        """Releases a lock, if this process has it."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)
