"""The timelines behind a paper's numbers, as an offline page.

Every cell that was timed keeps the trace of its first request. The page shows how each
of them begins, in a still picture. Cells that have their numbers from one and the same
run share its picture. From each cell of the paper's tables a link leads to its run
here, and one leads back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from speclab.experiment.spec import CellResult, Spec
from speclab.papers.paper_schema import Paper
from speclab.papers.table_result import TableResult
from speclib.drawing.svg import inline
from speclib.drawing.timeline.layout import layout
from speclib.drawing.timeline.render import render_timeline
from speclib.drawing.timeline.run import TimelineRun, timeline_run
from speclib.trace.events import Trace

from .entry import timed_cells
from .layout import read_file, render
from .places import Anchors

WIDTH = 1100  # pixels of a timeline
TOKENS = (24, 16, 12, 8)  # how many of a run are shown: as many as the page can take
MOST_LETTERS = 4_500_000  # of a page


class CellLink(NamedTuple):
    """A cell, its anchor here, and the address of its number; "" for none.

    The anchor is the same on both pages.
    """

    name: str
    anchor: str
    address: str


@dataclass
class ShownRun:
    """A run that was timed, with the cells that have their numbers from it.

    ``item`` is the first of them, under which it is shown.
    """

    result: CellResult
    item: str
    cells: list[CellLink] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.result.spec.kind

    @property
    def subject(self) -> str:
        """What was run: the models and prompts, or the latencies that were waited."""
        spec = self.result.spec
        parts = (spec.pair, spec.task) if spec.kind == "measured" else (spec.latency,)
        return ", ".join(part for part in parts if part)


@dataclass
class ItemOfRuns:
    """A table or figure: the runs shown under it, and its cells shown elsewhere."""

    item: str
    title: str
    runs: list[ShownRun] = field(default_factory=list)
    elsewhere: list[CellLink] = field(default_factory=list)


class TracedRun(NamedTuple):
    """A run as a timeline takes it: its trace, and the text of each token id."""

    trace: Trace
    pieces: dict[int, str]


def traces_page(
    paper: Paper, results: Mapping[str, TableResult], on_page: Anchors = frozenset()
) -> str:
    """The page of a paper's timelines; empty if no cell was timed.

    ``on_page`` are the anchors of the paper's own page, to which links lead back.
    """
    items = gather_runs(paper, results, on_page)
    if not items:
        return ""
    for tokens in TOKENS:
        html = _render(paper, items, tokens)
        if len(html) <= MOST_LETTERS:
            break
    return html


def gather_runs(
    paper: Paper, results: Mapping[str, TableResult], on_page: Anchors
) -> list[ItemOfRuns]:
    """The runs of all items; each run is shown once."""
    runs: dict[Spec, ShownRun] = {}
    items = []
    for result in results.values():
        item = ItemOfRuns(result.table.item, result.table.title)
        for cell in timed_cells(result):
            anchor = cell.anchor(result.table)
            address = f"{paper.key}.html#{anchor}" if anchor in on_page else ""
            link = CellLink(_name_of_cell(cell.row, cell.column), anchor, address)

            cell_result = result.cell_results[cell.row, cell.column, cell.kind]
            run = runs.get(cell_result.spec)
            if run is None:
                run = ShownRun(cell_result, item.item)
                runs[cell_result.spec] = run
                item.runs.append(run)
            if run.item != item.item:
                item.elsewhere.append(link)
            run.cells.append(link)
        if item.runs or item.elsewhere:
            items.append(item)
    return items


def _name_of_cell(row: str, column: str) -> str:
    """A cell as "row, column"; a row or column without a label is left out."""
    return ", ".join(label for label in (row, column) if label)


# -- rendering -------------------------------------------------------------------------
def _render(paper: Paper, items: list[ItemOfRuns], tokens: int) -> str:
    return render(
        "traces.html",
        title=f"{paper.title}: timelines",
        key=paper.key,
        traces_style=read_file("traces.css"),
        items=items,
        tokens=tokens,
        timeline_of=lambda run: _timeline(run.result, tokens),
        words_of=_in_words,
    )


def _timeline(cell_result: CellResult, tokens: int) -> str:
    """SVG of how a cell's first request begins."""
    run = _as_run(cell_result)
    until = _when_written(run.trace, tokens)
    return inline(render_timeline(layout([run], WIDTH, until or None)))


def _in_words(run: ShownRun) -> str:
    """The heading of a run: its method with its settings."""
    return _as_run(run.result).title


def _as_run(cell_result: CellResult) -> TimelineRun:
    assert cell_result.trace is not None  # only timed cells come here
    trace = Trace.from_json(cell_result.trace)
    of_spec = {"method": cell_result.spec.method, "gamma": cell_result.gamma}
    named = Trace(trace.events, of_spec | trace.meta)  # not every trace says its method
    return timeline_run(TracedRun(named, cell_result.pieces))


def _when_written(trace: Trace, tokens: int) -> float:
    """When a run has written so many tokens, or all that it wrote; in seconds."""
    for written, end in _progress(trace):
        if written >= tokens:
            return end
    return trace.makespan


def _progress(trace: Trace) -> Iterator[tuple[int, float]]:
    """After each commit, how many tokens are written, and the seconds."""
    written = 0
    for commit in trace.commits:
        written += len(commit.tokens)
        yield written, commit.end
