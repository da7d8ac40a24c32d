"""The checks in their order, and the files in which their rows stay.

Whoever has a GPU for ten minutes may lose it at any moment. So what matters most comes
first, the report is written after each row, and it says what was under way. Nothing is
begun once the time is over.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from speclab import machine_facts
from speclab.bench.bench_rows import BenchRow
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import unknown_name

from . import batches, bits, exactness, shapes, speed, spread
from .setup import Setup

Clock: TypeAlias = Callable[[], float]  # seconds since whenever

GRACE = 10.0  # seconds after the time is over in which a check may still end by itself


class Check(NamedTuple):
    """Some rows that are found together; ``name``: as --only has it."""

    name: str
    rows: Callable[[Setup], Generator[BenchRow]]


CHECKS = (
    Check("float32", exactness.in_float32),
    Check("growth", bits.before_and_after_growth),
    Check("one-shape", exactness.in_one_shape),
    Check("recorded", bits.of_recorded_passes),
    Check("recorded-methods", exactness.in_recorded_passes),
    Check("batches", batches.exact),
    Check("ranks", spread.on_two_ranks),
    Check("passes", speed.passes),
    Check("races", speed.races),
    Check("cpu-draft", speed.races_with_a_draft_on_the_cpu),
    Check("batch-gains", batches.gains),
    Check("shapes", shapes.passes_of_shapes),
    Check("bfloat16", exactness.in_bfloat16),
)


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks with these names, in their own order; without names, all of them.

    Raises BadValue for a name that no check has.
    """
    known = [check.name for check in CHECKS]
    for name in names:
        if name not in known:
            raise unknown_name(f"unknown check {name!r}", name, known)
    if not names:
        return CHECKS
    return tuple(check for check in CHECKS if check.name in names)


@dataclass
class Outcome:
    """What has come of the checks by now.

    ``stopped``: why the rest of a check was not run, by its name; empty where all of
    them were. ``under_way``: the check that is running; "" at the end.
    """

    rows: list[BenchRow] = field(default_factory=list)
    stopped: dict[str, str] = field(default_factory=dict)
    under_way: str = ""

    @property
    def holds(self) -> bool:
        """Whether everything was run, and every aim is met."""
        was_all_run = not self.stopped and not self.under_way
        return was_all_run and all(row.holds != "no" for row in self.rows)


def gpu_check(
    setup: Setup,
    checks: Sequence[Check] = CHECKS,
    folder: Path | None = None,
    clock: Clock = time.monotonic,
) -> Outcome:
    """Runs ``checks``, prints each row, and keeps a report of them, whatever fails.

    folder: where the report is written; None: reports/gpu.
    """
    if folder is None:
        folder = paths.REPORTS / "gpu"
    run = Run(setup, folder, clock)
    for check in checks:
        run.perform(check)
    run.finish()
    return run.outcome


class Run:
    """The checks of one setup, their time, and the report of them in ``folder``."""

    def __init__(self, setup: Setup, folder: Path, clock: Clock):
        self.setup = setup
        self.folder = folder
        self.clock = clock
        self.outcome = Outcome()
        self._started = clock()
        self._facts = facts_of_machine(setup)
        self._cells: list[dict[str, str]] = []  # of the rows, as they were when found

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return self.clock() - self._started

    @property
    def is_over_time(self) -> bool:
        """Whether nothing may be begun any more."""
        return self.seconds >= 60 * self.setup.minutes

    def perform(self, check: Check) -> None:
        """Runs a check; notes why it ended early, if it did."""
        if self.is_over_time:
            self._stop(check, f"not begun: {self.setup.minutes:g} minutes were over")
            return
        self.outcome.under_way = check.name
        self._write()
        try:
            self._take_rows(check)
        except Exception as error:  # what is known by then is reported all the same
            self._stop(check, f"{type(error).__name__}: {error}")

    def _take_rows(self, check: Check) -> None:
        """Takes a check's rows in; raises TimeoutError where the time is over."""
        with closing(check.rows(self.setup)) as rows:
            for row in rows:
                print(row, flush=True)
                self.outcome.rows.append(row)
                self._cells.append(row.as_dict())
                self._write()
                if self.is_over_time:
                    raise TimeoutError(f"{self.setup.minutes:g} minutes were over")

    def _stop(self, check: Check, reason: str) -> None:
        self.outcome.stopped[check.name] = reason
        print(f"{check.name} ended early: {reason}", flush=True)

    def finish(self) -> None:
        """Nothing is under way any more."""
        self.outcome.under_way = ""
        page = self._write()
        print(f"the report is {page}", flush=True)

    def _write(self) -> Path:
        """Writes <machine>.json with all that is known, and a page beside it."""
        report: dict[str, Any] = {
            "machine": self._facts,
            "seconds": round(self.seconds, 1),
            "rows": self._cells,
            "stopped": self.outcome.stopped,
            "under way": self.outcome.under_way,
        }
        name = machine_facts.name()
        text = json.dumps(report, indent=1)
        write_atomically(self.folder / f"{name}.json", f"{text}\n")
        page = self.folder / f"{name}.md"
        write_atomically(page, page_of(report, name))
        return page


def end_by_force_after(seconds: float) -> threading.Timer:
    """Ends this process after so many ``seconds``, wherever it hangs by then.

    The report has all rows that were found. Workers end with this process.
    """

    def end() -> None:
        print("the time is over: the check under way is not waited for", flush=True)
        sys.stdout.flush()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer


# -- the report ------------------------------------------------------------------------
def facts_of_machine(setup: Setup) -> dict[str, str]:
    """What the numbers depend on."""
    from speclab.bench.gpu import device_speed  # brings torch

    facts = dict(machine_facts.environment())
    facts["python"] = platform.python_version()
    facts["cuda"] = device_speed.cuda_version()
    facts["draft on"] = setup.draft
    facts["target on"] = setup.target
    return facts


def page_of(report: dict[str, Any], name: str) -> str:
    """The report on the machine of this ``name``, as Markdown."""
    lines = [
        f"# GPU check on {name}",
        "",
        f"The checks took {report['seconds']:.0f} s. All numbers are measured. An "
        "output that is plain decoding's is equal to it token for token.",
        "",
    ]
    if report["under way"]:
        lines += [
            f"**{report['under way']}** was under way when this was written. If "
            "nothing runs any more, it was killed there, and what comes after it is "
            "missing.",
            "",
        ]
    lines += ["| of the machine | |", "| --- | --- |"]
    for fact, value in report["machine"].items():
        lines.append(f"| {fact} | {value} |")
    lines += [
        "",
        "| what | value | aim | holds | note |",
        "| --- | ---: | --- | --- | --- |",
    ]
    for cells in report["rows"]:
        lines.append(
            f"| {cells['name']} | {cells['value']} {cells['unit']} | {cells['aim']} "
            f"| {cells['holds']} | {cells['note']} |"
        )
    for check, reason in report["stopped"].items():
        lines += ["", f"**{check}** ended early: {reason}"]
    return "\n".join(lines) + "\n"
