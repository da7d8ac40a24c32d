"""The index over all papers, as an offline page.

It begins with the words that a newcomer needs and three ways to go on. Then come a race
that moves, one picture, of what the abstracts say about speed, the lessons, and one
table, of every claim of every paper; at last a section per paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import ENGINE_KINDS, KINDS, Paper
from speclab.papers.table_result import TableResult
from speclab.views.shapes import inline
from speclab.views.tables.html import (
    failures_html,
    summary_html,
    table_html,
    verdicts_html,
)
from speclab.views.tables.tally import is_own
from speclab.views.tables.verdicts import SIGNS, Sign

from .entry import (
    ClaimEntry,
    Judged,
    PaperEntry,
    claim_entries,
    judged_in_results,
)
from .headlines import (
    NARROW,
    PHONE,
    WIDE,
    caption,
    headline_rows,
    in_words,
    render_headlines,
)
from .layout import read_file, render
from .lessons_page import Lesson
from .places import Anchors, Link, links_to
from .race import Race, race_figure


def summary(paper: Paper, results: Mapping[str, TableResult]) -> PaperEntry:
    """What the index says of one paper."""
    errors: dict[str, str] = {}
    for result in results.values():
        errors |= result.errors
    return PaperEntry(
        paper=paper,
        claims=claim_entries(paper, judged_in_results(results)),
        summary=summary_html(results),
        headline=table_html(_headline(results)),
        broken=verdicts_html(results, "no", ENGINE_KINDS),
        unsettled=verdicts_html(results, "open", ENGINE_KINDS),
        failed=failures_html(errors),
    )


def _headline(results: Mapping[str, TableResult]) -> TableResult:
    """The first item with the most kinds of number; tables go before figures."""

    def rank(result: TableResult) -> tuple[int, bool]:
        return len(result.kinds), result.table.item.startswith("table")

    return max(results.values(), key=rank)


# -- the page --------------------------------------------------------------------------
def index_page(
    entries: Sequence[PaperEntry],
    facts: Mapping[str, str],
    anchors: Mapping[str, Anchors] | None = None,
    *,
    has_audit: bool = False,
    lessons: Sequence[Lesson] = (),
    lecturers: str = "",
    race: Race | None = None,
) -> str:
    """The index over ``entries``, as ``summary`` makes them.

    ``facts`` describe how it was made. ``anchors`` are those in the pages of each
    paper; a paper without any has no page, and nothing leads there. ``has_audit``: the
    audit's page stands beside this one. ``lessons`` are those that have a page, and
    ``lecturers`` is the address of the page for lecturers. ``race`` stands on
    top.
    """
    anchors = anchors or {}
    link = links_to(anchors)
    claims = _claim_rows(entries, link)
    return render(
        "index.html",
        title="speclib: reports",
        index_style=read_file("index.css"),
        index_script=read_file("index.js"),
        papers=entries,
        picture=_picture(entries, link),
        claims=claims,
        has_second_verdicts=any(line.entry.over_same_devices for line in claims),
        kinds=KINDS,
        signs=SIGNS,
        verdicts=[SIGNS[holds] for holds in VERDICT_ORDER],
        facts=facts,
        has_page=anchors.get,
        is_own=is_own,
        has_audit=has_audit,
        lessons=lessons,
        lecturers=lecturers,
        race=race_figure(race) if race else "",
    )


# -- the picture -----------------------------------------------------------------------
class PagePicture(NamedTuple):
    """The picture in three widths, its caption, and a row of it per text in words."""

    wide: str
    narrow: str
    phone: str
    caption: str
    words: list[str]


def _picture(papers: Sequence[PaperEntry], link: Link) -> PagePicture | None:
    """The picture of the headline claims; None where no entry has any."""
    rows = headline_rows(papers)
    if not rows:
        return None
    return PagePicture(
        wide=inline(render_headlines(rows, link, WIDE)),
        narrow=inline(render_headlines(rows, link, NARROW)),
        phone=inline(render_headlines(rows, link, PHONE)),
        caption=caption(rows),
        words=[in_words(row) for row in rows],
    )


# -- the table -------------------------------------------------------------------------
# Verdicts in the order in which they are sorted, and offered for filtering.
VERDICT_ORDER = ("no", "open", "yes", "not judged")


class VerdictCell(NamedTuple):
    """What the table says of a claim for one kind of number.

    ``second`` is what it says of the number over the same devices, if anything.
    """

    line: VerdictLine
    sign: Sign
    sure: str
    second: VerdictCell | None = None

    @property
    def rank(self) -> int:
        """Its rank when it is sorted."""
        return VERDICT_ORDER.index(self.line.holds)

    @property
    def all_holds(self) -> str:
        """The verdicts of the cell, by which rows are filtered."""
        cells = (self, self.second)
        return " ".join(cell.sign.css_class for cell in cells if cell)


class ClaimLine(NamedTuple):
    """A row of the table of all claims; ``table`` is a link, "" for none."""

    paper: PaperEntry
    item: str
    entry: ClaimEntry
    table: str
    cells: dict[str, VerdictCell | None]
    order: str  # by which rows are sorted where they are sorted by item
    expected_number: str


def _claim_rows(papers: Sequence[PaperEntry], link: Link) -> list[ClaimLine]:
    """Every claim of every paper, in the order of papers and tables."""
    lines: list[ClaimLine] = []
    for paper in papers:
        for entry in paper.claims:
            line = ClaimLine(
                paper=paper,
                item=entry.item.replace("-", " ").capitalize(),
                entry=entry,
                table=link(paper.paper.key, entry.anchor),
                cells={kind: _verdict_cell(entry, kind) for kind in KINDS},
                order=f"{len(lines):05d}",
                expected_number=_first_number(entry.expected),
            )
            lines.append(line)
    return lines


def _verdict_cell(entry: ClaimEntry, kind: str) -> VerdictCell | None:
    judged = entry.verdicts.get(kind)
    if judged is None:
        return None
    cell, second = _describe(judged), entry.over_same_devices.get(kind)
    return cell._replace(second=_describe(second)) if second else cell


def _describe(judged: Judged) -> VerdictCell:
    return VerdictCell(judged.line, SIGNS[judged.line.holds], judged.sure)


def _first_number(text: str) -> str:
    """The number that a text begins with, by which it is sorted; "" for none."""
    match = re.match(r"-?\d+(\.\d+)?", text)
    return match[0] if match else ""
