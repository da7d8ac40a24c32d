"""Calling a student's function: whatever it does, it ends, and nothing is raised.

An error becomes a sentence that names the line of the student's code. A function that
does not come back is stopped after a few seconds, where the platform can do that: in
the main thread of a process on Linux or macOS, as in a notebook.
"""

from __future__ import annotations

import linecache
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from types import FrameType
from typing import Any

SECONDS = 10.0  # the exercises take less than 3


class Failed(Exception):
    """A student's function raised an error, did not end, or gave what it may not.

    Its message is a sentence for the student.
    """


class TookTooLong(Exception):
    """Raised inside a function whose time is over."""


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What ``function`` returns. Raises Failed with a sentence about its error."""
    try:
        return function(*arguments)
    except (TookTooLong, Failed):
        raise
    except Exception as error:
        raise Failed(describe_error(error, function)) from error


def describe_error(error: Exception, function: Callable[..., Any]) -> str:
    """An error in one sentence: its kind, the line of the student's code, its text."""
    kind = type(error).__name__
    code = getattr(unwrap(function), "__code__", None)
    file = getattr(code, "co_filename", None)
    own_lines = [
        f for f in traceback.extract_tb(error.__traceback__) if f.filename == file
    ]
    if not own_lines:
        return f"{kind}: {error}."
    last = own_lines[-1]
    line = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    return f"{kind} in your line `{line}`: {error}."


@contextmanager
def time_limit() -> Iterator[None]:
    """Ends what runs inside after ``SECONDS``. Raises Failed then.

    There is one alarm: one that was set before goes on afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    alarm_before = signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    except TookTooLong:
        raise Failed(
            f"It did not end within {SECONDS:g} s: is there a loop that never ends, or "
            "a round that commits nothing?"
        ) from None
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *alarm_before)
