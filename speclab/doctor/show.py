"""The doctor's report as tables in a terminal.

Knows only what the report says.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from speclib.models.part import Part

from .machine_checks import Check
from .pair_report import ASSUMED_GPU, PairReport
from .report import Report

GB = 1e9  # bytes
COLOURS = {"yes": "green", "differs": "yellow", "no": "red"}


def show(report: Report, console: Console) -> None:
    """Prints the report."""
    console.print(_checks_table(f"This machine, {report.machine}", report.checks))
    console.print(_checks_table("Kinds of number", report.kinds))
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
    table.add_column("will do", no_wrap=True)
    table.add_column("what to do", overflow="fold")
    for check in checks:
        state = f"[{COLOURS[check.state]}]{check.state}[/]"
        table.add_row(check.name, escape(check.found), state, escape(check.advice))
    return table


def _show_pairs(report: Report, console: Console) -> None:
    title = (
        f"The papers' pairs in {report.dtype}: GB of weights + GB of the KV cache of a "
        f"text of {report.length:,} tokens"
    )
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("what would stand where", overflow="fold", ratio=3)
    table.add_column("missing here", overflow="fold", ratio=2)
    for pair in report.pairs:
        missing = [escape(problem) for problem in pair.missing] or ["[green]nothing[/]"]
        table.add_row("\n".join(_layout(pair)), "\n".join(missing))
    console.print(table)
    console.print(
        f"A GB is 1e9 bytes. For GPUs that are not here, {ASSUMED_GPU / GB:.0f} GB are "
        "assumed. Activations are not counted. A pair under shape/ has the exact "
        "shapes of the models, as dilated embedded ones: it measures times, not text."
    )


def _layout(pair: PairReport) -> list[str]:
    """What stands where, one line for parts of one role that are of one size."""
    alike: dict[tuple[str, str], list[Part]] = {}
    for part in pair.parts:
        role = part.device.split("-")[0]
        sizes = f"{part.weights / GB:.1f} + {part.cache / GB:.1f}"
        alike.setdefault((role, sizes), []).append(part)

    lines = [f"[bold]{pair.name}[/]", f"{pair.paper}: {escape(pair.stands_for)}"]
    for (_role, sizes), parts in alike.items():
        devices = _range(dict.fromkeys(part.device for part in parts))
        places = _range(part.place for part in parts)
        each = " each" if len(parts) > 1 else ""
        lines.append(f"{devices}: {sizes}{each} on {places}")
    if pair.without_weights:
        lines.append(f"without weights: {pair.without_weights}")
    return lines


def _range(names: Iterable[str]) -> str:
    """Names in a row; of many, the first and the last."""
    names = list(names)
    if len(names) > 3:
        return f"{names[0]} to {names[-1]}"
    return ", ".join(names)
