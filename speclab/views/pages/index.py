"""The index over all papers, as an offline page.

It begins with the words that a newcomer needs and three ways to go on. Then come a race
that moves, one picture, of what the abstracts say about speed, the lessons, and one
table, of every claim of every paper; at last a section per paper. What it says of a
paper is stored as JSON, since the papers are made one by one: see ``entry``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import ENGINE_KINDS, KINDS, Paper
from speclab.papers.table_result import TableResult
from speclab.views.tables.html import (
    failures_html,
    summary_html,
    table_html,
    verdicts_html,
)
from speclab.views.tables.tally import count
from speclab.views.tables.verdicts import SIGNS, Sign
from speclib.drawing.numbers import number
from speclib.drawing.svg import inline

from .committed import with_committed
from .entry import (
    ClaimEntry,
    KindVerdict,
    PaperEntry,
    claim_entries,
    paper_name,
    read_entry,
)
from .headlines import (
    NARROW,
    PHONE,
    WIDE,
    Row,
    caption,
    headline_rows,
    in_words,
    render_headlines,
)
from .layout import read_file, render
from .lessons_page import Lesson
from .moving_runs import Place, moving_figure, moving_scripts
from .places import PageAnchors

# What the index says of one paper: texts, numbers and pieces of HTML by name.
IndexEntry = dict[str, object]


def summary(
    paper: Paper, results: Mapping[str, TableResult], profile: str
) -> IndexEntry:
    """What the index says of one paper, as values that JSON can hold.

    It outlives the run that made it. ``profile`` is the name of that run's profile.
    """
    errors: dict[str, str] = {}
    for result in results.values():
        errors |= result.errors
    claims = claim_entries(paper, results)
    return {
        "key": paper.key,
        "title": paper.title,
        "authors": ", ".join(paper.authors),
        "year": paper.year,
        "profile": profile,
        "counts": count(results),
        "summary": summary_html(results),
        "headline": table_html(_headline(results)),
        "broken": verdicts_html(results, "no", ENGINE_KINDS),
        "tied": verdicts_html(results, "tie", ENGINE_KINDS),
        "unsettled": verdicts_html(results, "open", ENGINE_KINDS),
        "failed": failures_html(errors),
        "claims": [claim.model_dump() for claim in claims],
    }


def _headline(results: Mapping[str, TableResult]) -> TableResult:
    """The first item with the most kinds of number; tables go before figures."""

    def rank(result: TableResult) -> tuple[int, bool]:
        return len(result.kinds), result.table.item.startswith("table")

    return max(results.values(), key=rank)


# -- the page --------------------------------------------------------------------------
def index_page(
    entries: Sequence[Mapping[str, Any]],
    facts: Mapping[str, str],
    anchors: Mapping[str, PageAnchors] | None = None,
    *,
    has_audit: bool = False,
    lessons: Sequence[Lesson] = (),
    lecturers: str = "",
    race: Place | None = None,
    committed: Sequence[VerdictLine] = (),
    all_papers: Mapping[str, Paper] | None = None,
) -> str:
    """The index over ``entries``, as ``summary`` makes them.

    Each entry has one more text, ``made``, which says when it was made and from which
    state of the repository. ``facts`` describe the machine. ``anchors`` are those in
    the pages of each paper; without them no claim and no number is a link.
    ``has_audit``: the audit's page stands beside this one. ``lessons`` are those that
    have a page, and ``lecturers`` is the address of the page for lecturers. ``race``
    are the runs that move on top. ``committed`` are the verdicts of the committed
    ledger, about papers in ``all_papers``. An entry that was made by older code is
    shown as far as it goes.
    """
    own_papers = [read_entry(entry) for entry in entries]
    papers = with_committed(own_papers, all_papers or {}, committed)
    linker = Linker(anchors or {})
    claims = _claim_rows(papers, linker)
    return render(
        "index.html",
        title="speclib: reports",
        index_style=read_file("index.css"),
        index_script=read_file("index.js"),
        papers=papers,
        picture=_picture(papers, linker),
        claims=claims,
        has_second_verdicts=any(line.has_second_verdict for line in claims),
        kinds=KINDS,
        verdicts={holds: SIGNS[holds] for holds in VERDICT_ORDER},
        facts=facts,
        name_of=paper_name,
        has_audit=has_audit,
        lessons=lessons,
        lecturers=lecturers,
        race=moving_figure(race) if race else "",
        moving=moving_scripts([race] if race else []),
    )


class Linker:
    """Addresses of anchors in the papers' pages; empty where there is none."""

    def __init__(self, anchors: Mapping[str, PageAnchors]):
        self._anchors = anchors

    def to_table(self, paper: str, anchor: str) -> str:
        return self._anchors_of(paper).table_link(anchor)

    def to_trace(self, paper: str, anchor: str) -> str:
        return self._anchors_of(paper).trace_link(anchor)

    def _anchors_of(self, paper: str) -> PageAnchors:
        return self._anchors.get(paper, PageAnchors(paper))


# -- the picture -----------------------------------------------------------------------
class PagePicture(NamedTuple):
    """The picture in three widths, its caption, and a row of it per text in words."""

    wide: str
    narrow: str
    phone: str
    caption: str
    words: list[str]


def _picture(papers: Sequence[PaperEntry], linker: Linker) -> PagePicture | None:
    """The picture of the headline claims; None where no entry has any."""
    rows: list[Row] = headline_rows(papers)
    if not rows:
        return None
    return PagePicture(
        wide=inline(render_headlines(rows, linker, WIDE)),
        narrow=inline(render_headlines(rows, linker, NARROW)),
        phone=inline(render_headlines(rows, linker, PHONE)),
        caption=caption(rows, linker),
        words=[in_words(row) for row in rows],
    )


# -- the table -------------------------------------------------------------------------
# Verdicts in the order in which they are sorted, and offered for filtering.
VERDICT_ORDER = ("no", "tie", "open", "yes", "n/a")


class VerdictCell(NamedTuple):
    """What the table says of a claim for one kind of number.

    ``holds`` is empty where there is no verdict; then all other texts are, too.
    ``second`` is what it says of the number over the same devices, if anything.
    ``is_committed``: all of it is the committed ledger's; ``committed`` is what that
    says where this checkout's verdict settles nothing.
    """

    kind: str
    holds: str
    verdict: Sign | None
    value: str = ""
    interval: str = ""
    note: str = ""
    trace: str = ""
    second: VerdictCell | None = None
    is_committed: bool = False
    committed: VerdictCell | None = None

    @property
    def rank(self) -> int:
        """Its rank when it is sorted; without a verdict it comes last."""
        if not self.holds:
            return len(VERDICT_ORDER)
        return VERDICT_ORDER.index(self.holds)

    @property
    def all_holds(self) -> str:
        """All verdicts of the cell, by which rows are filtered."""
        cells = (self, self.second, self.committed)
        return " ".join(cell.holds for cell in cells if cell)


class ClaimLine(NamedTuple):
    """A row of the table of all claims; ``table`` is a link, "" for none."""

    paper: str
    paper_name: str
    item: str
    claim: ClaimEntry
    table: str
    cells: list[VerdictCell]
    order: str  # by which rows are sorted where they are sorted by item
    expected_number: str

    @property
    def has_second_verdict(self) -> bool:
        """Whether any kind has one, on speed-ups over the same devices."""
        return any(cell.second for cell in self.cells)


def _claim_rows(papers: Sequence[PaperEntry], linker: Linker) -> list[ClaimLine]:
    """Every claim of every paper, in the order of papers and tables."""
    lines: list[ClaimLine] = []
    for paper in papers:
        for claim in paper.claims or ():
            cells = []
            for kind in KINDS:
                cells.append(_verdict_cell(paper.key, claim, kind, linker))
            line = ClaimLine(
                paper=paper.key,
                paper_name=paper_name(paper),
                item=claim.item.replace("-", " ").capitalize(),
                claim=claim,
                table=linker.to_table(paper.key, claim.anchor),
                cells=cells,
                order=f"{len(lines):05d}",
                expected_number=_first_number(claim.expected),
            )
            lines.append(line)
    return lines


def _verdict_cell(
    paper: str, claim: ClaimEntry, kind: str, linker: Linker
) -> VerdictCell:
    verdict = claim.verdict(kind)
    if verdict is None:
        return VerdictCell(kind, "", None)
    cell = _describe_cell(paper, verdict, linker)
    if verdict.over_same_devices is not None:
        second = _describe_cell(paper, verdict.over_same_devices, linker)
        cell = cell._replace(second=second)
    if verdict.committed is not None:
        committed = _describe_cell(paper, verdict.committed, linker)
        cell = cell._replace(committed=committed)
    return cell


def _describe_cell(paper: str, verdict: KindVerdict, linker: Linker) -> VerdictCell:
    holds = verdict.holds if verdict.holds in SIGNS else "n/a"
    return VerdictCell(
        kind=verdict.kind,
        holds=holds,
        verdict=SIGNS[holds],
        value=verdict.value,
        interval=_write_interval(verdict),
        note=verdict.note,
        trace=linker.to_trace(paper, verdict.trace) if verdict.trace else "",
        is_committed=verdict.is_committed,
    )


def _write_interval(verdict: KindVerdict) -> str:
    """The 95 % interval of a single number, as "1.91 .. 1.98"."""
    if verdict.low is None or verdict.high is None:
        return ""
    return f"{number(verdict.low)} .. {number(verdict.high)}"


def _first_number(text: str) -> str:
    """The number that a text begins with, by which it is sorted; "" for none."""
    match = re.match(r"-?\d+(\.\d+)?", text)
    return match[0] if match else ""
