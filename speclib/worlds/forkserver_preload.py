"""Makes the fork server end when its parent does, and leave no file behind.

Only the fork server runs this code. Importing torch takes seconds. During that time,
the server would not detect that the process that started it has ended. If that process
was killed, the socket would remain.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from multiprocessing import forkserver
from pathlib import Path

EVERY = 0.2  # seconds between checks for the parent, while importing
PARENT = "SPECLIB_FORK_SERVER_OF"  # set while the server starts: its parent's PID


def address() -> str | None:
    """The server's socket; None while it imports, and in any other process."""
    server = getattr(forkserver, "_forkserver")  # noqa: B009  (private: it has no type)
    return getattr(server, "_forkserver_address", None)


def watch(parent: int) -> None:
    """Checks whether the parent has ended, until the server checks that itself.

    The last check may come after the server has begun to listen.
    """

    def look(*_: object) -> None:
        if os.getppid() != parent:
            clean()  # if the server already listens, it would also end by itself
        signal.setitimer(signal.ITIMER_REAL, 0.0 if address() else EVERY)

    signal.signal(signal.SIGALRM, look)
    look()


def clean() -> None:
    """Removes the socket and its folder, since no process can use them any more.

    Then exits at once: torch has nothing to clean up.
    """
    socket = address()
    if socket is not None:
        with contextlib.suppress(OSError):
            Path(socket).unlink(missing_ok=True)
            Path(socket).parent.rmdir()
    os._exit(0)


if any("multiprocessing.forkserver" in word for word in sys.orig_argv):
    # PARENT is the process that started this server. If it has ended already, the
    # server's parent may be another one.
    watch(int(os.environ.pop(PARENT, os.getppid())))
    atexit.register(clean)
