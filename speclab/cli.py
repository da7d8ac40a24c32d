"""The commands of `python -m speclab`, such as `reproduce` and `store`.

Each command imports its heavy libraries itself, so the other commands start fast.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from speclib.errors import BadValue

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
        bool, typer.Option("--quick", help="Only the main tables, in five minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Take an hour, not twenty minutes.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(help="Time limit; 0 measures nothing and only writes reports."),
    ] = None,
) -> None:
    """Measure, and regenerate every table and figure in reports/local."""
    from speclab.reproduce import reproduce as reproducing
    from speclib.paths import REPORTS

    if full and (quick or minutes is not None):
        raise BadValue("--full sets the budget: leave out --quick and --minutes")
    budget = reproducing.QUICK_MINUTES if quick else reproducing.DEFAULT_MINUTES
    if full:
        budget = reproducing.FULL_MINUTES
    started = time.monotonic()
    outcome = reproducing.reproduce(
        paper or (), minutes=budget if minutes is None else minutes, quick=quick
    )
    print(f"{time.monotonic() - started:.1f} s. Open {REPORTS / 'index.html'}")
    if outcome.failed:
        _print_failures(outcome.failed)
    if outcome.interrupted:
        print("interrupted; finished runs are kept: run again to continue")
        raise typer.Exit(130)
    if outcome.failed:
        raise typer.Exit(1)


def _print_failures(errors: Mapping[str, str]) -> None:
    """Prints each reason once, with the names of the cells that failed for it."""
    from speclab.views.tables.table_page import group_by_reason

    heading = f"{len(errors)} failed; the others are stored. Run again to retry:"
    print(heading, file=sys.stderr)
    for reason, cells in group_by_reason(errors).items():
        print(f"  {reason}\n    {'; '.join(cells)}", file=sys.stderr)


@app.command()
def virtual(
    paper: Annotated[
        list[str] | None, typer.Option(help="Only this paper; repeatable.")
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Recompute all of data/virtual.csv.")
    ] = False,
) -> None:
    """Compute the virtual numbers missing from data/virtual.csv."""
    from speclab.reproduce.compute_virtual import compute_virtual
    from speclab.reproduce.reproduce import choose_papers

    if recompute and paper:
        raise BadValue("--recompute covers all papers: leave out --paper")
    failed = compute_virtual(choose_papers(paper or ()), recompute)
    if failed:
        _print_failures(failed)
        raise typer.Exit(1)


@app.command()
def why(
    paper: Annotated[str, typer.Argument(help="For example pearl.")],
    item: Annotated[
        str, typer.Argument(help="One of its tables, for example table-1.")
    ],
    row: Annotated[str, typer.Argument(help="A row, as printed.")],
    column: Annotated[str, typer.Argument(help="A column, as printed.")],
) -> None:
    """Explain, cause by cause, why a measured speed-up is not the published one."""
    from speclab.papers.why import why as reconcile_cell

    print(reconcile_cell(paper, item, row, column))


@app.command()
def check(
    rule: Annotated[
        str,
        typer.Argument(
            help="path/to/file.py:function, or the name of a method or pair."
        ),
    ],
    shape: Annotated[
        str | None, typer.Option(help="line, tree, candidates or method.")
    ] = None,
    array: Annotated[
        str, typer.Option(help="numpy, list, torch, or module:function.")
    ] = "numpy",
    gamma: Annotated[int | None, typer.Option(help="Draft length, for a line.")] = None,
    vocab: Annotated[
        int | None, typer.Option(help="Vocabulary size, for a line.")
    ] = None,
    put_back: Annotated[
        bool, typer.Option("--put-back", help="Draw candidates with replacement.")
    ] = False,
    drawn: Annotated[
        str, typer.Option(help="How drafts are drawn: q, argmax or top-k.")
    ] = "q",
    servers: Annotated[int, typer.Option(help="Target devices, for a method.")] = 1,
) -> None:
    """Check whether an acceptance rule or a method is lossless.

    Enumerates every outcome of a rule. The exit status is 0 if no error is found, 1 if
    one is, and 2 if the rule cannot be judged.
    """
    from speclab.check.check import check as check_rule
    from speclab.check.from_file import array_called, load_rule

    is_file = ":" in rule
    if not is_file and rule.endswith(".py"):
        raise BadValue(f"the rule is {rule!r}: write path/to/file.py:function")
    answer = check_rule(
        load_rule(rule) if is_file else rule,
        shape,
        array=array_called(array),
        gamma=gamma,
        vocab=vocab,
        put_back=put_back,
        drawn=drawn,
        servers=servers,
    )
    try:
        print(answer, flush=True)
    except OSError as error:
        sys.stdout = None  # or Python would report it again on exit
        raise BadValue(f"the answer cannot be printed: {error.strerror}") from error
    if answer.is_lossless is False:
        raise typer.Exit(1)
    if answer.problem:
        raise typer.Exit(2)


@app.command()
def plan(
    pair: Annotated[
        str, typer.Argument(help="A pair under data/pairs.")
    ] = "embedded/llama-7b-70b",
    task: Annotated[
        str, typer.Option(help="The task to take prompts from.")
    ] = "humaneval",
    prompts: Annotated[int, typer.Option(help="Number of prompts.")] = 4,
    tokens: Annotated[int, typer.Option(help="New tokens per prompt.")] = 64,
    servers: Annotated[int, typer.Option(help="Target devices, for DSI.")] = 1,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method; repeatable.")
    ] = None,
) -> None:
    """Measure which method is fastest for a pair on this machine."""
    from speclab.planning.plan import plan as measure_methods

    table = measure_methods(
        pair,
        methods=method,
        task=task,
        prompts=prompts,
        max_new_tokens=tokens,
        servers=servers,
    )
    print(table.to_string(na_rep=""))


@app.command()
def real(
    prompts: Annotated[int, typer.Option(help="Number of chat prompts.")] = 6,
    tokens: Annotated[int, typer.Option(help="New tokens per prompt.")] = 64,
    minutes: Annotated[float, typer.Option(help="Time limit.")] = 15,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Compare outputs on prompts from nine more tasks."
        ),
    ] = False,
) -> None:
    """Measure SmolLM2 with every method, and write smollm2.md into reports/local."""
    from speclab.reproduce import real_model

    if exact:
        failed = real_model.compare_outputs(minutes)
    else:
        failed = real_model.measure_real_model(prompts, tokens, minutes)
    real_model.write_real_model()
    if failed:
        _print_failures(failed)


@app.command()
def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with sizes in bytes.")
    ] = False,
    dtype: Annotated[
        str, typer.Option(help="Number format for the papers' pairs.")
    ] = "bfloat16",
    length: Annotated[
        int, typer.Option(help="Tokens in the KV cache, for the memory estimate.")
    ] = 4096,
) -> None:
    """Show what this machine can run, and what is missing for the papers' pairs."""
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
def fit(
    pair: Annotated[str, typer.Argument(help="A pair whose file sets `fitted`.")],
) -> None:
    """Size a stand-in's draft so that c on this machine matches the paper's."""
    from speclab.measure import fit as fitting

    fitted = fitting.fit(pair)
    print(f"{pair}: {fitted}; 99 %: {fitted.low:.3g} .. {fitted.high:.3g}")


@app.command()
def audit(
    code: Annotated[
        Path | None,
        typer.Option(help="Check the cited lines against the clones in this folder."),
    ] = None,
) -> None:
    """List the audit's findings, or check the lines of code that it cites."""
    from speclab.audit.items import load_audit
    from speclab.audit.readings import check_readings

    if code is None:
        for finding in load_audit().findings:
            print(f"{finding.paper}: {finding.title}: {finding.verdict}")
        print("reports/audit.md has the evidence and the authors' best answers")
        return

    readings = check_readings(load_audit(), code)
    for reading in readings:
        print(reading)
    if any(reading.at_commit == "not what was read" for reading in readings):
        raise typer.Exit(1)


@app.command()
def merge(
    rows: Annotated[Path, typer.Argument(help="A file of rows from another machine.")],
) -> None:
    """Add another machine's rows to data/runs, so that every report shows them."""
    from speclab.reproduce.publish import merge_rows

    print(f"{merge_rows(rows)} new rows in data/runs; `make reproduce` shows them")


@app.command("run-notebook")
def run_notebook(
    path: Annotated[Path, typer.Argument(help="The notebook.")],
    out: Annotated[Path, typer.Argument(help="Where to write the executed notebook.")],
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
    """Run a notebook with parameters; an unknown parameter is an error."""
    from speclab.reproduce import notebooks

    parameters = dict(_read_parameter(text) for text in parameter or ())
    print(notebooks.run_notebook(path, out, parameters))


@app.command()
def store(
    paths: Annotated[list[Path], typer.Argument(help="Lecture notebooks.")],
) -> None:
    """Run lectures in place and store their outputs for a commit, without widgets."""
    from speclab.reproduce.notebooks import store_lecture

    for path in paths:
        print(store_lecture(path))


@app.command()
def lessons() -> None:
    """Make the lessons in notebooks/learn from those in notebooks/solutions."""
    from speclab.teach.lessons import write_lessons

    for path in write_lessons():
        print(path)


@app.command()
def pictures(
    to: Annotated[
        Path | None,
        typer.Option(help="Output folder; reports/local/pictures by default."),
    ] = None,
) -> None:
    """Write the pictures for the board, each as SVG and PNG."""
    from speclab.teach.board_pictures import write_pictures
    from speclib.paths import REPORTS

    for path in write_pictures(to or REPORTS / "pictures"):
        print(path)


@app.command()
def site(
    out: Annotated[
        Path | None, typer.Option(help="Output folder; site by default.")
    ] = None,
) -> None:
    """Build a static site from the lessons, reports, audit, manual and API."""
    from speclab.reproduce.site import build_site
    from speclib.paths import HOME

    started = time.monotonic()
    built = build_site(out or HOME / "site")
    print(f"{time.monotonic() - started:.0f} s. Open {built / 'index.html'}")


def _read_parameter(text: str) -> tuple[str, object]:
    """Splits NAME=VALUE into the name and the value.

    The value is parsed as JSON (5, true, "a") if possible; otherwise it is text.
    """
    name, equals_sign, value = text.partition("=")
    if not equals_sign:
        raise BadValue(f"parameter {text!r}: give NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
