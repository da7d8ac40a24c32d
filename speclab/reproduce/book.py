"""Opens a paper for reading: fills its tables once, and shows each as a page.

    pearl = Book("pearl")
    pearl.show("table-5")           # does it reproduce, how closely, and what to know
    pearl.timeline("table-1", "Llama2 7&70B")

The notebooks under ``notebooks/reproduce`` use it. Numbers come from rows that were
published or measured here, and from the committed virtual numbers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated

from speclab.papers.figures import ReplayedSteps
from speclab.papers.fill import Known, fill_all, lines_of_others
from speclab.papers.ledger import LedgerLine
from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import TableResult
from speclab.papers.why import why
from speclab.runs.spec import Spec, VirtualSpec
from speclab.virtual.cells import example_trace
from speclib.arguments import Whole, checked
from speclib.errors import BadValue, unknown_name
from speclib.trace.events import Trace

if TYPE_CHECKING:
    from speclab.traces.reconcile import Reconciled
    from speclab.views.tables.shown import ShownTable
    from speclab.views.tables.table_page import TablePage
    from speclib.drawing.timeline.widget import Timeline

MOST_WAYS = 7  # rows or columns for which a page explains the measured difference
AUTHORS_SUFFIX = " (ours)"  # after the name of the authors' own method


@dataclass(frozen=True)
class ShownRun:
    """A run to show in a timeline: its trace, and the text of each token id."""

    trace: Trace
    pieces: dict[int, str]


class Book:
    """A paper and its filled tables.

    minutes  measure the paper's tables for this long before showing anything
    errors   why cells failed in the last measurement

    Raises SpeclibError for an unknown paper.
    """

    @checked
    def __init__(
        self,
        paper: str,
        *,
        minutes: Annotated[int, Whole(least=0)] = 0,
        errors: Mapping[Spec, str] | None = None,
    ):
        self.paper = load_paper(paper)
        self._errors = dict(errors or {})
        if minutes:
            from .measuring import measure_papers, print_at_once

            deadline = time.monotonic() + 60 * minutes
            self._errors |= measure_papers(
                [self.paper], deadline, quick=False, say=print_at_once
            )

    @cached_property
    def filled(self) -> dict[str, TableResult]:
        """Every table with all known numbers, by item."""
        return fill_all(self.paper, self._known)

    @cached_property
    def others(self) -> list[LedgerLine]:
        """The ledger lines from other machines."""
        lines: list[LedgerLine] = []
        for result in self.filled.values():
            lines += lines_of_others(result, self._known)
        return lines

    @property
    def pages(self) -> list[str]:
        """The items with a page of their own: those with more than printed numbers."""
        elsewhere = {line.item for line in self.others}
        return [
            item
            for item, result in self.filled.items()
            if result.has_numbers_of_ours or item in elsewhere
        ]

    @cached_property
    def _known(self) -> Known:
        return Known.here(self._errors)

    @checked
    def item(self, name: str) -> TableResult:
        """The item's table with all known numbers."""
        self.paper.table(name)  # raises an error that names an unknown item
        return self.filled[name]

    def show(self, name: str) -> ShownTable:
        """The item's page: does it reproduce, how closely, and what to know first."""
        from speclab.views.tables.shown import ShownTable

        return ShownTable(self.item(name), self.page(name))

    def page(self, name: str) -> TablePage:
        """The item's page as data, from which Markdown and HTML are made."""
        from speclab.views.tables.table_page import table_page

        return table_page(self.item(name), self.others, self._ways(name))

    def _ways(self, name: str) -> dict[str, Reconciled]:
        """Explains, cause by cause, why measured numbers differ from printed ones.

        Only for the paper's first table, since each number takes seconds.
        """
        table = self.item(name).table
        main = table.main
        if main is None or name != self.paper.facts.get("first_table"):
            return {}
        is_by_column = main.over == "columns"
        others = table.column_labels if is_by_column else table.row_labels
        ways: dict[str, Reconciled] = {}
        for label, other in product(main.labels, others):
            own = main.by or label
            row, column = (own, other) if is_by_column else (other, own)
            is_measured = (row, column, "measured") in self.item(name).numbers
            if is_measured and len(ways) < MOST_WAYS:
                with suppress(BadValue):  # no speed-up, or not run
                    ways[other] = why(
                        self.paper.key, name, row, column, known=self._known
                    )
        return ways

    def timeline(
        self, name: str, column: str | None = None, *, tokens: int = 24
    ) -> Timeline | None:
        """An item's printed steps, replayed; or one request for each row of a column.

        The requests are simulated now, with the paper's latencies. The axis ends when
        the slowest method has written ``tokens`` tokens. Returns None if ``column`` has
        no virtual numbers.
        """
        from speclib.drawing.timeline.widget import timeline

        result = self.item(name)
        if column is None and isinstance(result.figure, ReplayedSteps):
            return timeline(_replayed_run(result.figure))
        if column not in result.table.column_labels:
            problem = f"{name} has no column {column!r}"
            raise unknown_name(problem, str(column), result.table.column_labels)
        runs = {}
        for cell in cells_to_run(result.table, ("virtual",)):
            spec = cell.spec
            if cell.column == column and isinstance(spec, VirtualSpec):
                trace = example_trace(spec)
                label = cell.row.removesuffix(AUTHORS_SUFFIX)
                gamma = trace.meta.get("gamma")
                label += "" if gamma is None else f", γ = {gamma}"
                runs[label] = ShownRun(trace, {})
        if not runs:
            return None
        until = max(_when_written(tokens, run.trace) for run in runs.values())
        return timeline(*runs.values(), labels=list(runs), until=until)


def _replayed_run(steps: ReplayedSteps) -> ShownRun:
    """A replayed run, with a space added before each printed token."""
    pieces = {token: f" {word}" for token, word in steps.pieces.items()}
    return ShownRun(steps.trace, pieces)


def _when_written(tokens: int, trace: Trace) -> float:
    """The time in seconds when a run has written ``tokens`` tokens, or all of its."""
    written = 0
    for event in trace.commits:
        written += len(event.tokens)
        if written >= tokens:
            return event.end
    return trace.makespan
