"""Runs in the fork server alone: it ends with its parent and leaves no file.

While the server imports torch, which takes seconds, it would not notice that the
process which wants it is gone; and its socket stays behind when that process is killed.
Knows no worker.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from multiprocessing import forkserver
from pathlib import Path

EVERY = 0.2  # seconds between looks at the parent, while importing
PARENT = "SPECLIB_FORK_SERVER_OF"  # set while the server starts: its parent's number


def address() -> str | None:
    """The server's socket; None while it imports, and in any other process."""
    server = getattr(forkserver, "_forkserver")  # noqa: B009  (private: it has no type)
    return getattr(server, "_forkserver_address", None)


def watch(parent: int) -> None:
    """Looks whether the parent is gone, until the server does that itself.

    The last look may come after the server has begun to listen.
    """

    def look(*_: object) -> None:
        if os.getppid() != parent:
            clean()  # the server may listen already, and would end without this
        signal.setitimer(signal.ITIMER_REAL, 0.0 if address() else EVERY)

    signal.signal(signal.SIGALRM, look)
    look()


def clean() -> None:
    """Removes the socket and its folder once no process can use them.

    It then leaves at once, since there is nothing that torch need put in order.
    """
    socket = address()
    if socket is not None:
        with contextlib.suppress(OSError):
            Path(socket).unlink(missing_ok=True)
            Path(socket).parent.rmdir()
    os._exit(0)


if any("multiprocessing.forkserver" in word for word in sys.orig_argv):
    # Not the parent of now: the one that wanted this server may be gone already.
    watch(int(os.environ.pop(PARENT, os.getppid())))
    atexit.register(clean)
