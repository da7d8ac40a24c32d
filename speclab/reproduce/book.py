"""A paper opened for reading: its tables filled once, shown in the forms they have.

    pearl = Book("pearl", quick=True)
    pearl.show("table-5")           # what to look at, numbers by kind, verdicts, errata
    pearl.chart("table-5")
    pearl.timeline("table-1", "Llama2 7&70B")

The notebooks under ``notebooks/reproduce`` call this. Everything comes from the cache
of cells where that has it; what is missing is run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from speclab.experiment.run_cells import is_finished, run_all
from speclab.experiment.spec import FULL, QUICK, CellResult
from speclab.papers.earlier import earlier_numbers
from speclab.papers.figures import ReplayedSteps
from speclab.papers.fill import cells_of, collect_all, fill_all
from speclab.papers.ledger import LedgerLine, read_ledger
from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import TableCell
from speclab.papers.table_result import TableResult
from speclib import machine, paths
from speclib.arguments import checked
from speclib.errors import unknown_name
from speclib.trace.events import Trace

from . import failures
from .batches import FIRST_REQUESTS, scripts_of
from .open_cells import open_specs_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from speclib.drawing.timeline.widget import Timeline

# A table's runs are shown of one kind: the first of these that it has.
OF_THE_AUTHORS = " (ours)"  # after a name, in the tables of its authors
PREFERRED_KINDS = ("measured", "virtual", "emulated")

# A table's runs: by row, column and kind.
CellResults = dict[tuple[str, str, str], CellResult]


class Page:
    """Something to look at: HTML in notebooks, Markdown wherever only text is shown."""

    def __init__(self, html: str, markdown: str):
        self.html = html
        self.markdown = markdown

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.markdown}

    def __repr__(self) -> str:
        return self.markdown


@dataclass(frozen=True)
class ShownRun:
    """A run as a timeline takes it: its trace, and the text of each token id."""

    trace: Trace
    pieces: dict[int, str]


class Book:
    """A paper and its filled tables.

    ``quick`` runs fewer requests and prompts. With ``measured=False`` there are no real
    models, as where torch is not installed. With ``run=False`` nothing is run: the book
    shows what earlier runs left in the cache, and for the rest the ledger's numbers.
    Raises SpeclibError for an unknown paper or item.
    """

    @checked
    def __init__(
        self,
        paper: str,
        *,
        quick: bool = False,
        measured: bool = True,
        run: bool = True,
    ):
        self.paper = load_paper(paper)
        self.profile = QUICK if quick else FULL
        self.kinds = kinds_to_run(measured)
        self.run = run
        self._items: dict[str, TableResult] = {}

    @cached_property
    def filled(self) -> dict[str, TableResult]:
        """Every table with everything that is known of it, by item."""
        missing = [item for item in self.paper.tables if item not in self._items]
        known = self._items | (self._fill(missing) if missing else {})
        return {item: known[item] for item in self.paper.tables}

    def _fill(self, only: Iterable[str]) -> dict[str, TableResult]:
        """The same of some tables."""
        if self.run:
            return fill_all(self.paper, self.profile, only, kinds=self.kinds)
        errors = failures.read(self.paper.key)
        filled = collect_all(self.paper, self.profile, errors, only, self.kinds)
        own_lines = [line for line in self._ledger if not of_another_machine(line)]
        for result in filled.values():
            result.earlier = earlier_numbers(result.table, result.left_out, own_lines)
        return filled

    def cells(self) -> dict[str, list[TableCell]]:
        """The cells of every table that are to be run, by item."""
        return cells_of(self.paper, self.profile, kinds=self.kinds)

    def count_unfinished(self) -> int:
        """How many cells and scripts are not done.

        A cell has its first requests to do; one that an open claim asks for has all.
        """
        unfinished = set()
        for item, own_cells in self.cells().items():
            wanted = open_specs_of(self.filled[item], own_cells)
            for cell in own_cells:
                for spec in cell.specs:
                    requests = None if spec in wanted else FIRST_REQUESTS
                    if not is_finished(spec, requests):
                        unfinished.add(spec)
        count = len(unfinished)
        for script in scripts_of(self.paper, self.profile, self.kinds):
            script.count_done()
            count += not script.is_done
        return count

    @cached_property
    def others(self) -> list[LedgerLine]:
        """What other machines measured, from the merged ledger."""
        return [line for line in self._ledger if of_another_machine(line)]

    @cached_property
    def _ledger(self) -> list[LedgerLine]:
        """The paper's lines in the ledger as it is now; none without a ledger."""
        path = paths.REPORTS / "ledger.csv"
        if not path.exists():
            return []
        return [line for line in read_ledger(path) if line.paper == self.paper.key]

    @checked
    def item(self, name: str) -> TableResult:
        """The item's table with everything that is known of it.

        Of the other tables nothing is run, unless ``filled`` was asked for.
        """
        self.paper.table(name)  # an unknown item is named before any cell is run
        if "filled" in self.__dict__:
            return self.filled[name]
        if name not in self._items:
            self._items |= self._fill([name])
        return self._items[name]

    def show(self, name: str) -> Page:
        """What to look at, its numbers by kind, verdicts with reasons, errata."""
        from speclab.views.tables.html import section_html
        from speclab.views.tables.markdown import section_md

        result = self.item(name)
        return Page(section_html(result, self.others), section_md(result, self.others))

    def chart(self, name: str) -> go.Figure | None:
        """The item's chart, a plotly figure; None where the table says it all."""
        from speclab.views.charts.choose import chart

        return chart(self.item(name))

    def timeline(
        self, name: str, column: str | None = None, *, tokens: int | None = None
    ) -> Timeline | Page:
        """The printed steps of an item, replayed; or the runs of one of its columns.

        Of a ``column`` it shows one request by each method on one time axis, measured
        if it was. With ``tokens`` the axis is cut off where the slowest method has
        written so many. With ``run=False``, of a column that has not been run yet, it
        shows the virtual runs, simulated now; where it has none, it is a page that says
        so.
        """
        from speclib.drawing.timeline.widget import timeline

        result = self.item(name)
        if column is None and isinstance(result.figure, ReplayedSteps):
            return timeline(_replayed_run(result.figure))

        cell_results = result.cell_results
        if not self.run and _is_left_out(result, column):
            cell_results = self._simulated(name, column)
            if not cell_results:
                return _not_run_yet(f"{name}, column {column}")
        runs = _runs_by_label(name, cell_results, column)
        until = _when_all_have_written(tokens, runs.values()) if tokens else None
        return timeline(*runs.values(), labels=list(runs), until=until)

    def _simulated(self, name: str, column: str | None) -> CellResults:
        """The virtual cells of a column, few requests of each: a matter of seconds."""
        cells = cells_of(self.paper, QUICK, [name], kinds=("virtual",))[name]
        shown = [cell for cell in cells if cell.column == column]
        results = run_all([cell.spec for cell in shown])
        return {
            (cell.row, cell.column, cell.kind): results[cell.spec] for cell in shown
        }

    def summary(self) -> Page:
        """How many numbers of each kind there are, how many claims hold or are open."""
        from speclab.views.tables.html import summary_html
        from speclab.views.tables.markdown import summary_md

        return Page(summary_html(self.filled), summary_md(self.filled))


def kinds_to_run(measured: bool = True) -> tuple[str, ...]:
    """The kinds of number that this installation can produce.

    Measured numbers are left out on demand, and without torch.
    """
    if measured and find_spec("torch"):
        return ("virtual", "emulated", "measured")
    return ("virtual", "emulated")


def of_another_machine(line: LedgerLine) -> bool:
    """Whether a ledger line was timed on another machine.

    The machine stands in ``setup``: <pair>@<machine>/..., or <latency>@<machine> where
    the line is emulated.
    """
    _, at_sign, origin = line.setup.partition("@")
    return bool(at_sign) and origin.split("/")[0] != machine.name()


# -- timelines -------------------------------------------------------------------------
def _replayed_run(steps: ReplayedSteps) -> ShownRun:
    """A replayed run; printed tokens are words without blanks, so each gets one."""
    pieces = {token: f" {word}" for token, word in steps.pieces.items()}
    return ShownRun(steps.trace, pieces)


def _is_left_out(result: TableResult, column: str | None) -> bool:
    """Whether a column that should be run has no run yet."""
    has_runs = any(key[1] == column for key in result.cell_results)
    is_wanted = any(key[1] == column for key in result.left_out)
    return is_wanted and not has_runs


def _not_run_yet(what: str) -> Page:
    text = f"{what}: not run yet; `make reproduce` goes on with it."
    return Page(f"<p>{escape(text)}</p>", text)


def _runs_by_label(
    item: str, cell_results: CellResults, column: str | None
) -> dict[str, ShownRun]:
    """The first request of each run in a column, by row and window.

    All are of one kind: measured, where any is; else virtual, else emulated.
    """
    cells = {}
    for (row, column_of_cell, kind), cell_result in cell_results.items():
        if column_of_cell == column:
            cells[row, kind] = cell_result
    if not cells:
        problem = f"{item} has no runs in column {column!r}"
        columns = dict.fromkeys(column for _, column, _ in cell_results)
        raise unknown_name(problem, column, columns)

    kinds = {kind for _, kind in cells}
    shown_kind = next(kind for kind in PREFERRED_KINDS if kind in kinds)
    runs = {}
    for (row, kind), cell_result in cells.items():
        if kind == shown_kind:
            gamma = cell_result.gamma
            name = row.removesuffix(OF_THE_AUTHORS)
            label = name if gamma is None else f"{name}, γ = {gamma}"
            runs[label] = ShownRun(_trace_of(cell_result), cell_result.pieces)
    return runs


def _trace_of(cell_result: CellResult) -> Trace:
    """The trace of a cell's first request: the stored one, or one made again."""
    from speclab.experiment.engines.virtual import example_trace

    if cell_result.trace:
        return Trace.from_json(cell_result.trace)
    return example_trace(cell_result.spec)


def _when_all_have_written(tokens: int, runs: Iterable[ShownRun]) -> float:
    """When the slowest run has written so many tokens, in seconds."""
    return max(_when_written(tokens, run.trace) for run in runs)


def _when_written(tokens: int, trace: Trace) -> float:
    """When a run has written so many tokens, or all that it wrote; in seconds."""
    written = 0
    for event in trace.commits:
        written += len(event.tokens)
        if written >= tokens:
            return event.end
    return trace.makespan
