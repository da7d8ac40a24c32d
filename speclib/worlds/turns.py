"""Functions that take turns: each has a thread, and only one of them runs at a time.

So plain functions that wait can alternate in a fixed order: the caller resumes one, and
it runs until it pauses or ends.

This module does not depend on worlds or methods.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from speclib.errors import SpeclibError


class GivenUp(BaseException):
    """Raised in a paused function, to end it."""


class Turn:
    """A call of ``function``, which runs only when it is resumed.

    is_over: whether it has ended. Raises SpeclibError if no thread can be started.
    """

    def __init__(self, function: Callable[[], object]):
        self.is_over = False
        self._function = function
        self._error: BaseException | None = None
        self._is_given_up = False
        self._may_run = threading.Semaphore(0)
        self._has_stopped = threading.Semaphore(0)
        try:
            threading.Thread(target=self._run, daemon=True).start()
        except RuntimeError as error:
            raise SpeclibError(
                "several requests at a time take turns in threads, but this Python "
                f"cannot start a thread ({error}): leave out batch"
            ) from error

    def resume(self) -> None:
        """Runs the function until it pauses or ends; raises any error of its own."""
        self._may_run.release()
        self._has_stopped.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Called by the function itself; waits until the function is resumed."""
        self._has_stopped.release()
        self._may_run.acquire()
        if self._is_given_up:
            raise GivenUp

    def give_up(self) -> None:
        """Ends the function where it has paused, unless it has ended already."""
        self._is_given_up = True
        if not self.is_over:
            self.resume()

    def _run(self) -> None:
        self._may_run.acquire()
        try:
            if not self._is_given_up:
                self._function()
        except GivenUp:
            pass
        except BaseException as error:  # ``resume`` raises it
            self._error = error
        finally:
            self.is_over = True
            self._has_stopped.release()
