"""A paper opened for reading: its tables filled once, each shown as table, chart or timeline.

    pearl = Book("pearl", quick=True)
    pearl.show("table-5")           # claim, numbers by kind, verdicts, errata
    pearl.chart("table-5")

What notebooks under ``notebooks/reproduce`` call. Everything comes from the cache of cells where
that has it; what is missing is run.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib.util import find_spec
from types import SimpleNamespace

from speclib import paths
from speclib.arguments import checked
from speclib.errors import unknown_name
from speclib.experiment import machine
from speclib.experiment.spec import FULL, QUICK
from speclib.papers.fill import fill_all
from speclib.papers.ledger import LedgerRow, read_ledger
from speclib.papers.load import load_paper
from speclib.papers.table_result import TableResult
from speclib.trace.events import Trace


class Page:
    """Something to look at: HTML in notebooks, Markdown wherever only text is shown."""

    def __init__(self, html: str, markdown: str):
        self.html, self.markdown = html, markdown

    def _repr_mimebundle_(self, **_) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.markdown}

    def __repr__(self) -> str:
        return self.markdown


def kinds(measured: bool = True) -> tuple[str, ...]:
    """The kinds of number this installation can produce: without torch, none that is measured."""
    return (
        "virtual",
        "emulated",
        *(["measured"] if measured and find_spec("torch") else []),
    )


class Book:
    """A paper and its filled tables. ``quick``: fewer requests and prompts; ``measured=False``:
    no real models (also without torch). Raises SpeclibError for an unknown paper or item."""

    @checked
    def __init__(self, paper: str, *, quick: bool = False, measured: bool = True):
        self.paper, self.profile = load_paper(paper), QUICK if quick else FULL
        self.kinds = kinds(measured)

    @cached_property
    def filled(self) -> dict[str, TableResult]:
        """Item -> its table with everything known of it."""
        return fill_all(self.paper, self.profile, kinds=self.kinds)

    @cached_property
    def others(self) -> list[LedgerRow]:
        """What other machines measured, from the merged ledger."""
        path = paths.REPORTS / "ledger.csv"
        rows = read_ledger(path) if path.exists() else []
        return [r for r in rows if r.paper == self.paper.key and of_another_machine(r)]

    @checked
    def item(self, name: str) -> TableResult:
        """The item's table with everything known of it."""
        self.paper.table(name)  # an unknown item is named before any cell is run
        return self.filled[name]

    def show(self, name: str) -> Page:
        """What the item claims, its numbers side by side, verdicts with reasons, errata."""
        from speclib.views.tables.html import section_html
        from speclib.views.tables.markdown import section_md

        filled = self.item(name)
        return Page(section_html(filled, self.others), section_md(filled, self.others))

    def chart(self, name: str):
        """A plotly figure; None where the table says it all."""
        from speclib.views.charts.choose import chart

        return chart(self.item(name))

    def timeline(self, name: str, column: str | None = None, *, tokens: int = 24):
        """The item's own timeline (printed steps replayed), or the runs behind ``column`` of a
        table: one request by each method, measured if it was, on one axis; its first ``tokens``."""
        from speclib.views.timeline.widget import timeline

        filled = self.item(name)
        drawn = filled.figure
        if column is None and hasattr(
            drawn, "pieces"
        ):  # printed tokens: words without spaces
            words = {i: f" {word}" for i, word in drawn.pieces.items()}
            return timeline(SimpleNamespace(trace=drawn.trace, pieces=words))
        runs = _runs(filled, column)
        return timeline(
            *runs.values(), labels=list(runs), until=_until(runs.values(), tokens)
        )

    def summary(self) -> Page:
        """Per kind: cells filled, claims by verdict."""
        from speclib.views.tables.html import summary_html
        from speclib.views.tables.markdown import summary_md

        return Page(summary_html(self.filled), summary_md(self.filled))


def of_another_machine(row: LedgerRow) -> bool:
    """Whether a ledger row was timed elsewhere: ``setup`` is <pair>@<machine>/..., or emulated
    <latency>@<machine>."""
    return (
        "@" in row.setup and row.setup.partition("@")[2].split("/")[0] != machine.name()
    )


def _runs(filled: TableResult, column: str | None) -> dict[str, SimpleNamespace]:
    """What a timeline shows of each run in ``column``, by label: its first request's trace and
    the text of its tokens. The measured ones, where there are any; else virtual, else emulated."""
    from speclib.experiment.engines.virtual import example_trace

    found = {
        (row, kind): run
        for (row, at, kind), run in filled.cell_results.items()
        if at == column
    }
    if not found:
        problem = f"{filled.table.item} has no runs in column {column!r}"
        columns = dict.fromkeys(column for _, column, _ in filled.cell_results)
        raise unknown_name(problem, column, columns)
    best = next(
        k for k in ("measured", "virtual", "emulated") if k in {k for _, k in found}
    )
    shown = {}
    for (row, kind), run in found.items():
        if kind == best:
            trace = Trace.from_json(run.trace) if run.trace else example_trace(run.spec)
            label = row if run.gamma is None else f"{row}, γ = {run.gamma}"
            shown[label] = SimpleNamespace(trace=trace, pieces=run.pieces)
    return shown


def _until(runs: Iterable, tokens: int) -> float:
    """When the slowest run has written ``tokens``."""
    ends = []
    for run in runs:
        written = 0
        for event in run.trace.commits:
            written += len(event.tokens)
            if written >= tokens:
                ends.append(event.end)
                break
        else:
            ends.append(run.trace.makespan)
    return max(ends)
