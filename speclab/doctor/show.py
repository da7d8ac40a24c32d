"""Shows the doctor's report as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from speclib.models.preflight import ASSUMED_GPU, GB, MemoryUse

from .machine_checks import Check
from .pair_report import PairReport
from .report import Report

COLOURS = {"yes": "green", "differs": "yellow", "no": "red"}


def show(report: Report, console: Console) -> None:
    """Prints the report."""
    console.print(_checks_table(f"This machine, {report.machine}", report.checks))
    if report.pairs_reason:
        console.print(f"The papers' pairs were not examined: {report.pairs_reason}.")
    else:
        _show_pairs(report, console)
    if report.runs_default:
        console.print("The embedded models can run here: make reproduce, make lab.")
    else:
        console.print("The embedded models cannot run here; see what is missing above.")


def _checks_table(title: str, checks: Iterable[Check]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("what", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_column("ok", no_wrap=True)
    table.add_column("what to do", overflow="fold")
    for check in checks:
        state = f"[{COLOURS[check.state]}]{check.state}[/]"
        table.add_row(check.name, escape(check.found), state, escape(check.advice))
    return table


def _show_pairs(report: Report, console: Console) -> None:
    title = (
        f"The papers' pairs in {report.dtype}: GB of weights + GB of KV cache for "
        f"{report.length:,} tokens"
    )
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("what would run where", overflow="fold", ratio=3)
    table.add_column("missing here", overflow="fold", ratio=2)
    for pair in report.pairs:
        missing = [escape(problem) for problem in pair.missing] or ["[green]nothing[/]"]
        table.add_row("\n".join(_layout(pair)), "\n".join(missing))
    console.print(table)
    console.print(
        f"A GB is 1e9 bytes. A missing GPU is assumed to have {ASSUMED_GPU / GB:.0f} "
        "GB. Activations are not counted. A pair under shape/ dilates embedded models "
        "to the exact shapes: its times are meaningful, its texts are not."
    )


def _layout(pair: PairReport) -> list[str]:
    """The models on each device, one line per device."""
    lines = [f"[bold]{pair.name}[/]", f"{pair.paper}: {escape(pair.stands_for)}"]
    for device in dict.fromkeys(use.device for use in pair.parts):
        uses = [use for use in pair.parts if use.device == device]
        places = ", ".join(use.place for use in uses)
        lines.append(f"{device}: {_size(uses)} on {places}")
    if pair.without_weights:
        lines.append(f"without weights: {pair.without_weights}")
    return lines


def _size(uses: Sequence[MemoryUse]) -> str:
    weights = sum(use.weights for use in uses)
    cache = sum(use.cache for use in uses)
    return f"{weights / GB:.1f} + {cache / GB:.1f}"
