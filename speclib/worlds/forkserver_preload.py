"""Imported by the fork server alone, first of all: it ends with its parent and leaves
no file.

While it imports torch, seconds, the server would not notice that the process which
wants it is gone; and its socket stays behind when that process is killed. Knows no
worker.
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


def address() -> str | None:
    """The server's socket; None as long as it imports, and anywhere but in the server."""
    return getattr(forkserver._forkserver, "_forkserver_address", None)


def watch(parent: int) -> None:
    """Looks now and then whether the parent is gone, until the server does so by
    itself."""

    def look(*_):
        if os.getppid() != parent:
            os._exit(1)
        signal.setitimer(signal.ITIMER_REAL, 0.0 if address() else EVERY)

    signal.signal(signal.SIGALRM, look)
    look()


def clean() -> None:
    """Removes the socket and its folder, when the last process that could use them is
    gone; and
    leaves at once, for there is nothing that torch need put in order."""
    with contextlib.suppress(OSError, TypeError):
        Path(address()).unlink(missing_ok=True)
        Path(address()).parent.rmdir()
    os._exit(0)


if any("multiprocessing.forkserver" in word for word in sys.orig_argv):
    watch(os.getppid())
    atexit.register(clean)
