"""The checks in their order, and the files in which their rows stay."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from speclib import machine, paths
from speclib.atomic_files import write_atomically
from speclib.bench.rows import BenchRow

from . import speed
from .exactness import exactness
from .setup import Setup

Check = Callable[[Setup], Iterator[BenchRow]]

CHECKS: tuple[Check, ...] = (exactness, speed.passes, speed.races)


class Outcome(NamedTuple):
    """What came of the checks.

    ``stopped``: why the rest was not run, by check; empty where all of it was.
    """

    rows: list[BenchRow]
    stopped: dict[str, str]

    @property
    def holds(self) -> bool:
        """Whether everything was run, and every aim is met."""
        return not self.stopped and all(row.holds != "no" for row in self.rows)


def gpu_check(setup: Setup) -> Outcome:
    """Runs all checks, prints each row, and writes a report, whatever fails."""
    started = time.monotonic()
    outcome = Outcome([], {})
    for check in CHECKS:
        try:
            for row in check(setup):
                print(row, flush=True)
                outcome.rows.append(row)
                if time.monotonic() - started > 60 * setup.minutes:
                    raise TimeoutError(f"{setup.minutes:g} minutes were over")
        except Exception as error:  # what is known by then is reported all the same
            outcome.stopped[check.__name__] = f"{type(error).__name__}: {error}"
            print(f"{check.__name__} ended early: {error}", flush=True)
    write_report(setup, outcome, time.monotonic() - started)
    return outcome


# -- the report ------------------------------------------------------------------------
def write_report(setup: Setup, outcome: Outcome, seconds: float) -> Path:
    """Writes reports/gpu/<machine>.json, and a page beside it; returns the page."""
    folder = paths.REPORTS / "gpu"
    facts = facts_of_machine(setup)
    report: dict[str, Any] = {
        "machine": facts,
        "seconds": round(seconds, 1),
        "rows": [row.as_dict() for row in outcome.rows],
        "stopped": outcome.stopped,
    }
    name = machine.name()
    write_atomically(folder / f"{name}.json", json.dumps(report, indent=1) + "\n")
    page = folder / f"{name}.md"
    write_atomically(page, page_of(facts, outcome, seconds))
    return page


def facts_of_machine(setup: Setup) -> dict[str, str]:
    """What the numbers depend on."""
    from speclib.models.device_speed import cuda_version  # brings torch

    facts = dict(machine.environment())
    facts["python"] = platform.python_version()
    facts["cuda"] = cuda_version()
    facts["draft on"] = setup.draft
    facts["target on"] = setup.target
    return facts


def page_of(facts: dict[str, str], outcome: Outcome, seconds: float) -> str:
    """The report as Markdown."""
    lines = [
        f"# GPU check on {machine.name()}",
        "",
        f"`make gpu-check` took {seconds:.0f} s. All numbers are measured. An output "
        "that is plain decoding's is equal to it token for token.",
        "",
        "| of the machine | |",
        "| --- | --- |",
    ]
    for name, value in facts.items():
        lines.append(f"| {name} | {value} |")
    lines += [
        "",
        "| what | value | aim | holds | note |",
        "| --- | ---: | --- | --- | --- |",
    ]
    for row in outcome.rows:
        cells = row.as_dict()
        lines.append(
            f"| {row.name} | {cells['value']} {row.unit} | {cells['aim']} "
            f"| {row.holds} | {row.note} |"
        )
    for check, reason in outcome.stopped.items():
        lines += ["", f"**{check}** ended early: {reason}"]
    return "\n".join(lines) + "\n"
