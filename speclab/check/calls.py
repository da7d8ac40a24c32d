"""Calls a user's function so that the call ends and raises only our own errors.

An error becomes a sentence that names the line of the user's code. A function that does
not return is stopped after a few seconds if the platform allows it: in the main thread
of a process on Linux or macOS, which includes notebooks. Generators are run to the end
here, because otherwise their errors and endless loops would only appear later.
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

# CPU time of one call; correct exercises need less than 1 s. On a busy machine, a
# wall-clock limit of the same length would stop correct functions. So the wall-clock
# limit is PATIENCE times as long; it stops only functions that wait and do nothing.
SECONDS = 3.0
PATIENCE = 4
SECONDS_OF_ALL = 30.0  # CPU time of all calls in one check
# A function may go on when it is stopped, as in `try: ... except: pass`. We then stop
# it again after this many seconds.
AGAIN = 0.25
AT_ONCE = 1e-3  # seconds; 0 would switch the timer off
MOST_YIELDED = 10_000  # the most values that we take from a generator


class Failed(Exception):
    """A user's function raised an error, did not end, or returned something invalid.

    The message is a sentence for the author of the function.
    """


class TookTooLong(BaseException):
    """Raised inside a function whose time is up.

    It is not an Exception, so the function's `except Exception` does not catch it.
    """


class AllTookTooLong(TookTooLong):
    """The time for all calls together is up."""


def call_guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls ``function``. Raises Failed, with a sentence, if this raises an error.

    Generators, maps and zips are returned as tuples. Raises NotRepeatable if the
    function draws random numbers other than its coins.
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
    except BaseException as error:  # SystemExit, or a user's own class
        if is_caused_by(error, TookTooLong):
            raise TookTooLong from error
        if is_caused_by(error, NotRepeatable):
            raise NotRepeatable(str(error)) from error
        raise Failed(describe_error(error, function)) from error


def _require_no_coroutine(result: Any) -> None:
    """Raises Failed for the result of an ``async def``, which we do not await."""
    if isinstance(result, Coroutine):
        result.close()  # otherwise Python warns that it was never awaited
    if isinstance(result, Awaitable | AsyncIterator):
        raise Failed(f"Your function returns {as_written(result)}: {NO_COROUTINE}.")


NO_COROUTINE = "it is not awaited here, so write `def` instead of `async def`"


def is_caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether an error, or one of its causes, is of this kind.

    A device wraps an error raised during an operation in its own error.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, kind):
            return True
        cause = cause.__cause__
    return False


def _text_of(error: BaseException) -> str:
    """An error's text. A user's own error class may fail to produce one."""
    try:
        return str(error)
    except Exception:
        return "its text cannot be shown"


def as_written(value: Any, length: int = 60) -> str:
    """The shortened ``repr`` of a value, or its type if that fails."""
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
    """The method that runs when an object is called; None if it is not callable."""
    return getattr(type(value), CALL, None)


CALL = "__call__"


class Limit:
    """The deadline for all calls in the current check.

    ``ends_at`` is measured in CPU seconds of this process; None: no limit.
    """

    ends_at: float | None = None


@contextmanager
def time_limit(seconds_of_all: float = SECONDS_OF_ALL) -> Iterator[None]:
    """Limits each call inside to ``SECONDS``, and all of them to ``seconds_of_all``.

    Raises Failed if a limit is exceeded.
    """
    if not CAN_STOP or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    timers = {kind: signal.getitimer(kind) for kind in TIMERS}
    before = {number: signal.signal(number, _stop) for number in SIGNALS}
    Limit.ends_at = time.process_time() + seconds_of_all
    try:
        yield
    except AllTookTooLong:
        raise Failed(
            f"Its calls did not all end within {seconds_of_all:g} s of CPU time: is "
            "each call slow?"
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
    SIGNALS = (signal.SIGPROF, signal.SIGALRM)  # sent by the timers


@contextmanager
def _alarm() -> Iterator[None]:
    """Ends one call after ``SECONDS``, along with any calls nested in it."""
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
    """Sends a signal after ``seconds``, and repeats it while it has no effect.

    Afterwards, an earlier timer continues with the time that it had left.
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
    """Stops the running code unless that would do harm; the signal is soon repeated.

    In a finalizer, Python would print the error and continue. A half-loaded module
    cannot be loaded again, so an import may take up to the wall-clock limit.
    """
    files = [weakref.__file__]
    if number == signal.SIGPROF:
        files.append(IMPORT_SYSTEM)
    if not _is_within(frame, files):
        raise TookTooLong


IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def _is_within(frame: FrameType | None, files: Collection[str]) -> bool:
    """Whether code of one of ``files`` is anywhere on the call stack."""
    while frame is not None:
        if frame.f_code.co_filename in files:
            return True
        frame = frame.f_back
    return False
