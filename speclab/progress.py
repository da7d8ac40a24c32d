"""One progress display for everything that takes over two seconds.

It is a bar in a terminal or notebook, and plain lines in logs, pipes and papermill's
output.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType

QUIET = 2.0  # seconds before anything is shown
BETWEEN_LINES = 10.0  # seconds


class Progress:
    """Shows how many steps of a task are finished while the task runs.

        with Progress("virtual cells", total=40) as bar:
            bar.step("table-5")

    ``total`` is the number of steps known at the start; ``grow`` adds to it.
    """

    def __init__(self, title: str, total: int = 0, *, show: bool = True):
        self.title = title
        self.total = total
        self.done = 0
        self.show = show
        self._started = time.monotonic()
        self._last_line: float | None = None  # when a plain line was printed
        self._bar = None

    def __enter__(self) -> Progress:
        if self.show and _can_redraw():
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=self.total, desc=self.title, delay=QUIET, leave=False
            )
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._last_line is not None:
            end = "done" if error_type is None else f"stopped: {error_type.__name__}"
            self._print_line(end)

    def grow(self, steps: int) -> None:
        """Adds newly found steps to the total."""
        self.total += steps
        if self._bar is not None:
            self._bar.total = self.total
            self._bar.refresh()

    def rename(self, title: str) -> None:
        """Changes the title."""
        self.title = title
        if self._bar is not None:
            self._bar.set_description(title)

    def step(self, what: str = "", steps: int = 1) -> None:
        """Counts newly finished steps; ``what`` names the last of them."""
        self.done += steps
        if self._bar is not None:
            self._bar.set_postfix_str(what, refresh=False)
            self._bar.update(steps)
        elif self.show and self._is_line_due():
            self._print_line(what)
            self._last_line = time.monotonic()

    def _is_line_due(self) -> bool:
        """Whether the next plain line is due."""
        now = time.monotonic()
        if self._last_line is None:
            return now - self._started > QUIET
        return now - self._last_line > BETWEEN_LINES

    def _print_line(self, what: str) -> None:
        seconds = time.monotonic() - self._started
        line = f"{self.title}: {self.done} of {self.total}, {seconds:.0f} s  {what}"
        print(line.rstrip(), flush=True)


def _can_redraw() -> bool:
    """Whether a bar can redraw itself: in a terminal, or in a live notebook."""
    if sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    kernel = ipython.get_ipython()
    return type(kernel).__name__ == "ZMQInteractiveShell"
