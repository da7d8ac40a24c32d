"""One progress display for everything that takes over two seconds.

A bar in a terminal or notebook, plain lines elsewhere (a log, a pipe, papermill's output).
"""

from __future__ import annotations

import sys
import time

QUIET = 2.0  # seconds before anything is shown
EVERY = 10.0  # seconds between plain lines


class Progress:
    """``with Progress("virtual cells", total=40) as bar: bar.step("table-5")``; total may grow."""

    def __init__(self, title: str, total: int = 0, *, show: bool = True):
        self.title, self.total, self.done, self.show = title, total, 0, show
        self._start = self._said = time.monotonic()
        self._bar = None

    def __enter__(self) -> Progress:
        if self.show and _draws():
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=self.total, desc=self.title, delay=QUIET, leave=False
            )
        return self

    def __exit__(self, *exc) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._said > self._start:
            self._say("done" if exc[0] is None else f"stopped: {exc[0].__name__}")

    def grow(self, more: int) -> None:
        """``more`` steps turned up."""
        self.total += more
        if self._bar is not None:
            self._bar.total = self.total
            self._bar.refresh()

    def step(self, what: str = "", steps: int = 1) -> None:
        """So many steps are finished; ``what`` names the last."""
        self.done += steps
        if self._bar is not None:
            self._bar.set_postfix_str(what, refresh=False)
            self._bar.update(steps)
        elif self.show:
            now = time.monotonic()
            if now - self._start > QUIET and (
                now - self._said > EVERY or self._said == self._start
            ):
                self._said = now
                self._say(what)

    def _say(self, what: str) -> None:
        print(
            f"{self.title}: {self.done} of {self.total}, "
            f"{time.monotonic() - self._start:.0f} s  {what}".rstrip(),
            flush=True,
        )


def _draws() -> bool:
    """Whether a bar can redraw itself here: a terminal, or a notebook someone looks at."""
    if sys.stderr.isatty():
        return True
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell else None
    return kernel is not None and type(kernel).__name__ == "ZMQInteractiveShell"
