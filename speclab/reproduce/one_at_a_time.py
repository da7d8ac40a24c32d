"""Ensures that only one ``make reproduce`` runs in a checkout at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from speclib import paths
from speclib.atomic_files import cannot_write


@contextmanager
def one_at_a_time(say: Callable[[str], object]) -> Iterator[None]:
    """Waits, with a message, until no other run is under way in this checkout.

    The operating system releases the lock of a killed run. Raises SpeclibError if the
    lock file cannot be written.
    """
    path = paths.CACHE / "reproduce.lock"
    lock = FileLock(path)
    try:
        paths.CACHE.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        say(
            "another run is under way in this checkout: waiting for it to end "
            "(interrupt to stop waiting); its measurements will not be repeated"
        )
        lock.acquire()
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield
    finally:
        lock.release()
