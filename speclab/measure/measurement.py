"""The state that all runs in one call of ``measure`` share."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import NamedTuple, TypeVar

from speclab.runs.rows import Row, RowKey, append, key_of, read_all
from speclab.runs.spec import Spec
from speclab.runs.this_machine import name_of_this_machine
from speclab.traces.counts import Counts
from speclib import paths
from speclib.errors import how_to_install

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class Window(NamedTuple):
    """The window that a cell uses; ``gamma`` is None for a method without a window.

    ``how``: how it was chosen; "" if the cell requested a number.
    """

    gamma: int | None
    how: str = ""


class Measurement:
    """The rows of this machine, the deadline, and what failed.

    deadline  on the clock of ``time.monotonic``; None: no deadline
    say       called with a line of text when something begins
    failures  why cells failed; they are not tried again
    """

    def __init__(self, deadline: float | None, say: Callable[[str], object]):
        self.deadline = deadline
        self.say = say
        self.machine = name_of_this_machine()
        self.failures: dict[RowKey, str] = {}
        self._rows: dict[RowKey, list[Row]] = defaultdict(list)
        self._lock = threading.Lock()  # emulated runs end in threads
        for row in read_all():
            if row.machine == self.machine:
                self._rows[row.key].append(row)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def missing(self, spec: Spec, prompts: int) -> list[int]:
        """The numbers of the first prompts that lack a run grouped with a baseline.

        A killed measurement may have left rows without their baseline. A failed cell
        has no missing prompts.
        """
        key = key_of(spec)
        if key in self.failures:
            return []
        groups = {row.group for row in self._rows[key_of(spec.baseline)]}
        done = {row.prompt for row in self._rows[key] if row.group in groups}
        return [number for number in range(prompts) if number not in done]

    def window_of(self, spec: Spec) -> Window | None:
        """The window in a cell's newest row, which the cell keeps."""
        rows = self._rows[key_of(spec)]
        if not rows:
            return None
        newest = max(rows, key=lambda row: row.date)
        return Window(newest.gamma, newest.how)

    def add(self, row: Row) -> None:
        """Appends a row. Raises SpeclibError if its file cannot be written."""
        with self._lock:
            append(row)
            self._rows[row.key].append(row)

    def fail(self, keys: Iterable[RowKey], error: Exception) -> None:
        """Records why cells failed."""
        self.failures |= dict.fromkeys(keys, in_words(error))


@dataclass
class Group:
    """Runs that take turns on one prompt, and their rows.

    where   where they run, in words
    prompt  the prompt's index in the task
    c       the time of a target pass over the time of a draft pass
    draft   the draft's backend
    """

    measurement: Measurement
    where: str
    prompt: int
    c: float
    draft: str

    def __post_init__(self) -> None:
        began = datetime.now().isoformat(timespec="milliseconds")
        self.name = f"{began} {self.where} {self.prompt}"

    def add(
        self,
        key: RowKey,
        window: Window,
        turn: int,
        stats: Counts,
        others: float,
        differs: int | None = None,
    ) -> None:
        """Appends the row of a finished run; see ``Row`` for the arguments."""
        row = Row(
            machine=self.measurement.machine,
            key=key,
            group=self.name,
            prompt=self.prompt,
            turn=turn,
            gamma=window.gamma,
            how=window.how,
            c=self.c,
            draft=self.draft,
            stats=stats,
            others=others,
            differs=differs,
            date=now(),
            commit=commit_of_code(),
        )
        self.measurement.add(row)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Groups items by ``key``, in their original order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def in_words(error: Exception) -> str:
    """Why a cell failed; if a library is missing, also how to install it."""
    if not isinstance(error, ImportError):
        return f"{error}" or type(error).__name__
    return (
        f"{error}: measured cells need the libraries of real models: "
        f"{how_to_install('models')}"
    )


def now() -> str:
    """The date and time, to the second."""
    return datetime.now().isoformat(timespec="seconds")


@cache
def commit_of_code() -> str:
    """The short hash of this checkout's commit, marked if code or data have changed.

    Returns "" without git.
    """
    try:
        code = ("speclib", "speclab", "data")
        changed_files = _git("status", "--porcelain", "--untracked-files=no", *code)
        commit = _git("rev-parse", "--short", "HEAD")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit} with changes" if changed_files else commit


def _git(*words: str) -> str:
    """The output of a git command."""
    finished = subprocess.run(
        ["git", "-C", str(paths.ROOT), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return finished.stdout.strip()
