"""Calling somebody's function: whatever it does, it ends, and nothing is raised.

An error becomes a sentence that names the line of that function's code. A function that
does not come back is stopped after a few seconds, where the platform can do that: in
the main thread of a process on Linux or macOS, as in a notebook. What it yields, if it
is a generator, is collected here, since its errors and its endless loops come then.
"""

from __future__ import annotations

import linecache
import signal
import threading
import time
import traceback
import weakref
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterator,
)
from contextlib import contextmanager
from functools import partial
from inspect import unwrap
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from speclib.worlds.enumerator import NotRepeatable

# What one call may take of a processor's time; those of the exercises take less than 1.
# On a busy machine a clock on the wall would stop right functions. It only stops those
# that wait and do nothing, at this many times as much.
SECONDS = 3.0
PATIENCE = 4
SECONDS_OF_ALL = 30.0  # all calls of one check, of a processor's time
# Until a function is stopped again that went on, as in `try: ... except: pass`.
AGAIN = 0.25
AT_ONCE = 1e-3  # seconds: a timer of 0 would be none
MOST_YIELDED = 10_000  # values of a generator that are looked at


class Failed(Exception):
    """Somebody's function raised an error, did not end, or gave what it may not.

    Its message is a sentence for who wrote it.
    """


class TookTooLong(BaseException):
    """Raised inside a function whose time is over.

    No Exception, so that an `except Exception` of that function does not catch it.
    """


class AllTookTooLong(TookTooLong):
    """The time of all calls together is over."""


def call_guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """What ``function`` returns. Raises Failed with a sentence about its error.

    What it yields, or gives as a map or a zip, comes as a tuple. NotRepeatable is
    raised where it takes chance from elsewhere than its coins.
    """
    try:
        with _alarm():
            result = function(*arguments)
            if isinstance(result, Iterator):
                return tuple(islice(result, MOST_YIELDED))
            _require_no_coroutine(result)
            return result
    except (TookTooLong, Failed, NotRepeatable, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit, or one of somebody's own
        if is_caused_by(error, TookTooLong):
            raise TookTooLong from error
        if is_caused_by(error, NotRepeatable):
            raise NotRepeatable(str(error)) from error
        raise Failed(describe_error(error, function)) from error


def _require_no_coroutine(result: Any) -> None:
    """Raises Failed for what an ``async def`` gives: nobody here awaits it."""
    if isinstance(result, Coroutine):
        result.close()  # else Python warns that it was never awaited
    if isinstance(result, Awaitable | AsyncIterator):
        raise Failed(f"Your function gives {as_written(result)}: {NO_COROUTINE}.")


NO_COROUTINE = "it is not awaited here, so write `def` and no `async def`"


def is_caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether an error, or one that led to it, is of a kind.

    A device turns what is raised while it works into an error of its own.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, kind):
            return True
        cause = cause.__cause__
    return False


def _text_of(error: BaseException) -> str:
    """What an error says; an error of one's own may fail to say anything."""
    try:
        return str(error)
    except Exception:
        return "its text cannot be shown"


def as_written(value: Any, length: int = 60) -> str:
    """A value as Python writes it, cut; one of an odd class may not be written."""
    is_sized = isinstance(value, list | tuple | set | dict | str | bytes)
    if is_sized and len(value) > MOST_YIELDED:
        return f"{len(value)} values, as {type(value).__name__}"
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}..."


def describe_error(error: BaseException, function: Callable[..., Any]) -> str:
    """An error in one sentence: its kind, the line of the function, its text."""
    kind = type(error).__name__
    file = getattr(code_of(function), "co_filename", None)
    own_lines = [
        f for f in traceback.extract_tb(error.__traceback__) if f.filename == file
    ]
    if not own_lines:
        return f"{kind}: {_text_of(error)}."
    last = own_lines[-1]
    line = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    return f"{kind} in your line `{line}`: {_text_of(error)}."


def code_of(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial, or an object that can be called."""
    function = unwrap(function)
    while isinstance(function, partial):
        function = unwrap(function.func)
    if not hasattr(function, "__code__"):
        function = call_of(function)
    code: CodeType | None = getattr(function, "__code__", None)
    return code


def call_of(value: object) -> Any:
    """What runs if an object is called; None where it cannot be."""
    return getattr(type(value), CALL, None)


CALL = "__call__"


class Limit:
    """When the calls of the check that is going on must have ended.

    ``ends_at`` is a moment of the process's own time on a processor; None while there
    is no limit.
    """

    ends_at: float | None = None


@contextmanager
def time_limit(seconds_of_all: float = SECONDS_OF_ALL) -> Iterator[None]:
    """Ends a ``call`` inside after ``SECONDS``, and all after ``seconds_of_all``.

    Raises Failed then.
    """
    if not CAN_STOP or threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone
        return

    timers = {kind: signal.getitimer(kind) for kind in TIMERS}
    before = {number: signal.signal(number, _stop) for number in SIGNALS}
    Limit.ends_at = time.process_time() + seconds_of_all
    try:
        yield
    except AllTookTooLong:
        raise Failed(
            f"All its calls together did not end within {seconds_of_all:g} s of "
            "computing: does each take so long?"
        ) from None
    except TookTooLong:
        raise Failed(
            f"It did not end within {SECONDS:g} s: is there a loop that never ends, or "
            "a round that commits nothing?"
        ) from None
    finally:
        Limit.ends_at = None
        for kind, timer in timers.items():
            signal.setitimer(kind, *timer)
        for number, handler in before.items():
            signal.signal(number, handler)


CAN_STOP = hasattr(signal, "setitimer")  # not on Windows, nor in a browser
if CAN_STOP:
    TIMERS = (signal.ITIMER_PROF, signal.ITIMER_REAL)
    SIGNALS = (signal.SIGPROF, signal.SIGALRM)  # which the timers send


@contextmanager
def _alarm() -> Iterator[None]:
    """Ends one call after ``SECONDS``; so does it a call inside it."""
    if Limit.ends_at is None:
        yield
        return
    if time.process_time() > Limit.ends_at:
        raise AllTookTooLong
    computing = _timer(signal.ITIMER_PROF, SECONDS)
    waiting = _timer(signal.ITIMER_REAL, PATIENCE * SECONDS)
    with computing, waiting:
        yield


@contextmanager
def _timer(kind: int, seconds: float) -> Iterator[None]:
    """Sends a signal after so many seconds, and once more while that is of no use.

    What is left of a timer that was set before goes on afterwards.
    """
    left_before, again = signal.setitimer(kind, seconds, AGAIN)
    try:
        yield
    finally:
        left, _ = signal.setitimer(kind, 0)
        if left_before:
            used = seconds - left
            signal.setitimer(kind, max(left_before - used, AT_ONCE), again)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ends what runs, but not where that does harm: the signal comes again soon.

    In what tidies up after an object that is gone, Python prints an error and goes on.
    A module that is half loaded cannot be loaded again; it may take the time that a
    function has on the wall's clock.
    """
    files = [weakref.__file__]
    if number == signal.SIGPROF:
        files.append(IMPORT_SYSTEM)
    if not _is_within(frame, files):
        raise TookTooLong


IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def _is_within(frame: FrameType | None, files: Collection[str]) -> bool:
    """Whether what runs was called, at any remove, by the code of one of ``files``."""
    while frame is not None:
        if frame.f_code.co_filename in files:
            return True
        frame = frame.f_back
    return False
