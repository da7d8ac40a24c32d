"""Guards a world: one request at a time, in the process that opened it.

A request changes the world's text, queues and clock, and each worker holds one
operation. So a second request is refused before it changes anything: from a callback of
the first, from another thread, from a forked child (which shares the workers' pipes
with its parent), and after ``close``.

This module imports no world, method or device.
"""

from __future__ import annotations

import inspect
import os
import threading

from speclib.errors import BadValue, SpeclibError

ADVICE = "open a world for each, or decode one prompt after the other"


class WorldNotFree(SpeclibError, RuntimeError):
    """A world is busy, closed or in another process, and cannot serve this request.

    A request that is already running is not affected.
    """


class Owner:
    """Keeps track of the one request that a world serves; see the top of this file."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.is_closed = False
        self._busy = threading.Lock()
        self._thread: threading.Thread | None = None  # runs the request
        self.is_in_callback = False  # while the request's callback runs

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened the world."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Raises WorldNotFree if the world is closed or belongs to another process."""
        if not self.is_here:
            raise WorldNotFree(
                f"this world was opened by process {self._process}, and process "
                f"{os.getpid()} is a fork of it: open another world here"
            )
        if self.is_closed:
            raise WorldNotFree("this world was closed: open it again")

    def take(self) -> None:
        """Begins a request.

        Raises WorldNotFree as ``check`` does, or if a request is running. A thread that
        begins another request has abandoned its last one.
        """
        self.check()
        thread = threading.current_thread()
        is_free = self._busy.acquire(blocking=False)
        was_dropped = thread is self._thread and not self.is_in_callback
        if not is_free and not was_dropped:
            name = self._thread.name if self._thread else ""
            raise WorldNotFree(
                f"this world is busy with a request of thread {name!r}: {ADVICE}"
            )
        self._thread = thread

    def give_back(self) -> None:
        """Ends the request."""
        self.is_in_callback = False
        if self._busy.locked():
            self._busy.release()

    def close(self) -> None:
        """Refuses every further request."""
        self.is_closed = True


def check_answer(answer: object) -> None:
    """Raises BadValue if a callback returned a coroutine, which would never run."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise BadValue(
            "on_commit is an async function, and decode does not await it: give a "
            "plain function, for example queue.put_nowait, and run decode in "
            "asyncio.to_thread"
        )
