"""The checks' report: a JSON file and a page, rewritten after each row."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from speclab import machine_facts
from speclab.bench.bench_rows import BenchRow
from speclib.atomic_files import write_atomically

from .setup import Setup


class Report:
    """The results so far, in ``folder`` as <machine>.json and .md.

    ``stopped``: for each check that ended early, the reason. ``under_way``: the running
    check; "" at the end. ``clock``: returns seconds since an arbitrary moment.
    """

    def __init__(self, setup: Setup, folder: Path, clock: Callable[[], float]):
        self.folder = folder
        self.rows: list[BenchRow] = []
        self.stopped: dict[str, str] = {}
        self.under_way = ""
        self._clock = clock
        self._started = clock()
        self._facts = facts_of_machine(setup)
        self._cells: list[dict[str, str]] = []  # the rows' columns when they were added

    @property
    def holds(self) -> bool:
        """Whether everything was run and every aim is met."""
        was_all_run = not self.stopped and not self.under_way
        return was_all_run and all(row.holds != "no" for row in self.rows)

    @property
    def seconds(self) -> float:
        """Seconds since the first check began."""
        return self._clock() - self._started

    def begin(self, name: str) -> None:
        """Records which check is now under way; "" if none is."""
        self.under_way = name
        self._write()

    def add(self, row: BenchRow) -> None:
        """Adds a row and prints it."""
        print(row, flush=True)
        self.rows.append(row)
        self._cells.append(row.as_dict())
        self._write()

    def stop(self, name: str, reason: str) -> None:
        """Records and prints that a check ended early."""
        self.stopped[name] = reason
        print(f"{name} ended early: {reason}", flush=True)

    def _write(self) -> None:
        report = {
            "machine": self._facts,
            "seconds": round(self.seconds, 1),
            "rows": self._cells,
            "stopped": self.stopped,
            "under way": self.under_way,
        }
        name = machine_facts.name()
        text = json.dumps(report, indent=1)
        write_atomically(self.folder / f"{name}.json", f"{text}\n")
        write_atomically(self.folder / f"{name}.md", page_of(report, name))


def facts_of_machine(setup: Setup) -> dict[str, str]:
    """The facts on which the numbers depend."""
    return dict(machine_facts.environment()) | {
        "python": platform.python_version(),
        "cuda": str(torch.version.cuda or "none"),
        "draft on": setup.draft,
        "target on": setup.target,
    }


def page_of(report: dict[str, Any], name: str) -> str:
    """The report for the machine ``name``, as Markdown."""
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
            "nothing is running any more, it was killed there, and later checks are "
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
