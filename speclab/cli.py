"""The commands of `python -m speclab`, such as `reproduce` and `store`.

Heavy libraries are imported by what needs them, so that a command with nothing to do is
fast.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from speclib.errors import BadValue, unknown_name

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn, check and reproduce parallel speculative decoding.",
)


@app.command()
def reproduce(
    paper: Annotated[
        list[str] | None, typer.Option(help="Only this paper; repeatable.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter requests, five minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Up to an hour, for what is still open.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(help="The budget, instead of 25; what would not end in it waits."),
    ] = None,
    virtual: Annotated[bool, typer.Option("--virtual", help="No real models.")] = False,
    world: Annotated[
        str, typer.Option(help="processes, or cluster: measured on a cluster's nodes.")
    ] = "processes",
) -> None:
    """Regenerate every table and figure into reports/."""
    from speclab.reproduce.regenerate import reproduce as regenerate

    started = time.monotonic()
    on_nodes = _is_on_nodes(world)
    try:
        outcome = regenerate(
            paper or (),
            quick=quick,
            minutes=_minutes(quick, full, minutes),
            measured=not virtual,
            on_nodes=on_nodes,
        )
    except KeyboardInterrupt:
        print(
            "\ninterrupted; finished cells are stored, run again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None

    for key in outcome.current:
        print(f"{key}: nothing changed, reports are up to date")
    for key, count in outcome.unfinished.items():
        print(f"{key}: {count} cells are not done; run again to go on with them")
    print(f"{time.monotonic() - started:.1f} s. Open reports/index.html")
    if outcome.failed:
        _print_failures(outcome.failed)
    if outcome.interrupted:
        print(
            "interrupted; finished cells are stored, run again to go on",
            file=sys.stderr,
        )
        raise typer.Exit(130)
    if outcome.failed:
        raise typer.Exit(1)


def _is_on_nodes(world: str) -> bool:
    """Whether cells are measured on the nodes of a cluster."""
    worlds = ("processes", "cluster")
    if world not in worlds:
        raise unknown_name(f"unknown world {world!r}", world, worlds)
    return world == "cluster"


def _minutes(quick: bool, full: bool, minutes: float | None) -> float:
    """The budget that the options mean."""
    from speclab.reproduce.budget import DEFAULT_MINUTES, FULL_MINUTES, QUICK_MINUTES

    if full and (quick or minutes is not None):
        raise BadValue("--full is a budget of its own: give it without the others")
    if minutes is not None:
        return minutes
    if full:
        return FULL_MINUTES
    return QUICK_MINUTES if quick else DEFAULT_MINUTES


def _print_failures(errors: Mapping[str, str]) -> None:
    """Prints each reason once, with the names of all that failed for it."""
    from speclab.views.tables.failed_cells import group_by_reason

    heading = f"{len(errors)} failed; all others are stored, run again to retry:"
    print(heading, file=sys.stderr)
    for failure in group_by_reason(errors):
        print(f"  {failure.reason}\n    {'; '.join(failure.cells)}", file=sys.stderr)


@app.command()
def plan(
    pair: Annotated[
        str, typer.Argument(help="A pair under data/pairs.")
    ] = "embedded/llama-7b-70b",
    task: Annotated[str, typer.Option(help="Whose prompts.")] = "humaneval",
    prompts: Annotated[int, typer.Option(help="How many of them.")] = 4,
    tokens: Annotated[int, typer.Option(help="Written after each.")] = 64,
    check: Annotated[int, typer.Option(help="Methods that are measured.")] = 3,
    servers: Annotated[int, typer.Option(help="Targets, for DSI.")] = 1,
    batch: Annotated[int, typer.Option(help="Requests decoded at a time.")] = 1,
) -> None:
    """Find the fastest method for a pair on this machine, and its settings."""
    from speclab.planning.plan import plan as find_fastest

    found = find_fastest(
        pair,
        task=task,
        prompts=prompts,
        max_new_tokens=tokens,
        check=check,
        servers=servers,
        batch=batch,
    )
    print(found)


@app.command()
def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs; sizes in bytes.")
    ] = False,
    dtype: Annotated[
        str, typer.Option(help="In which the papers' pairs are counted.")
    ] = "bfloat16",
    length: Annotated[
        int, typer.Option(help="Of the text whose KV cache is counted, in tokens.")
    ] = 4096,
) -> None:
    """Say what this machine can run, and what is missing for the papers' pairs."""
    from speclab.doctor import report as reports

    report = reports.examine_machine(dtype, length)
    if as_json:
        print(reports.as_json(report))
    else:
        from rich.console import Console

        from speclab.doctor.show import show

        show(report, Console())
    if not report.runs_default:
        raise typer.Exit(1)


@app.command()
def audit(
    code: Annotated[
        Path | None,
        typer.Option(help="Check the lines that were read, in clones in this folder."),
    ] = None,
) -> None:
    """Show the gravest findings of the audit, or check what it read in clones."""
    from rich.console import Console
    from rich.markdown import Markdown

    from speclab.reproduce.audit_book import Audit
    from speclab.views.audit.pages import readings_md

    if code is None:
        findings = Audit()
        Console().print(Markdown(findings.gravest().markdown))
        Console().print(Markdown(findings.summary().markdown))
        print("All items, with their evidence: reports/audit.html")
        return

    from speclab.audit.clones import check_readings
    from speclab.audit.load_items import load_audit

    readings = check_readings(load_audit(), code)
    print(readings_md(readings))
    if any(reading.at_commit == "not what was read" for reading in readings):
        raise typer.Exit(1)


@app.command()
def merge(
    ledger: Annotated[Path, typer.Argument(help="Another machine's ledger.csv.")],
) -> None:
    """Add another machine's measurements to reports/ledger.csv, beside our own."""
    from speclab.reproduce.publish import merge_ledger

    new_lines = merge_ledger(ledger)
    print(f"{new_lines} new lines in reports/ledger.csv; `make reproduce` shows them")


@app.command("run-notebook")
def run_notebook(
    path: Annotated[Path, typer.Argument(help="The notebook.")],
    out: Annotated[Path, typer.Argument(help="Where to write the executed one.")],
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--parameter",
            metavar="NAME=VALUE",
            help="Repeatable; unknown names fail.",
        ),
    ] = None,
) -> None:
    """Run a notebook with parameters, strictly: an unknown parameter is an error."""
    from speclab.reproduce import notebooks

    parameters = dict(_read_parameter(text) for text in parameter or ())
    print(notebooks.run_notebook(path, out, parameters))


@app.command()
def store(
    paths: Annotated[list[Path], typer.Argument(help="Notebooks of lectures.")],
) -> None:
    """
    Run lectures in place and store their outputs, without widgets: for committing.
    """
    from speclab.reproduce.notebooks import store_lecture

    for path in paths:
        print(store_lecture(path))


@app.command()
def lessons() -> None:
    """
    Write the versions of every lesson in notebooks/source, and what pages say of them.
    """
    from speclab.teach.entries import write_entries
    from speclab.teach.lecturers_page import write_lecturers_page
    from speclab.teach.lessons import write_versions

    for path in write_versions():
        print(path)
    print(write_lecturers_page())
    print(write_entries())


@app.command()
def pictures(
    to: Annotated[
        Path | None, typer.Option(help="The folder; reports/pictures if left out.")
    ] = None,
) -> None:
    """Write the pictures for the board, each as SVG, PDF and PNG."""
    from speclab.teach.board_pictures import write_pictures
    from speclib.paths import REPORTS

    for path in write_pictures(to or REPORTS / "pictures"):
        print(path)


@app.command()
def site(
    out: Annotated[
        Path | None, typer.Option(help="The folder; site if left out.")
    ] = None,
) -> None:
    """
    Write lessons, report, audit, manual and API as a site that needs no Python.
    """
    from speclab.reproduce.site import build_site
    from speclib.paths import HOME

    started = time.monotonic()
    built = build_site(out or HOME / "site")
    seconds = time.monotonic() - started
    print(f"{built.pages} pages, {built.size / 1e6:.1f} MB, in {seconds:.0f} s")
    if not built.has_api:
        print("without the API: its pages need pdoc, `pip install -e '.[site]'`")
    print(f"Open {built.folder / 'index.html'}")


def _read_parameter(text: str) -> tuple[str, object]:
    """The name and the value of NAME=VALUE.

    The value is JSON where it can be read so (5, true, "a"), else text.
    """
    name, equals_sign, value = text.partition("=")
    if not equals_sign:
        raise BadValue(f"parameter {text!r}: give NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
