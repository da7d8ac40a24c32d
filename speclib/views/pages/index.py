"""The index over all papers, as an offline page.

What it says of a paper is kept as JSON, since the papers are made one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speclib.papers.schema import ENGINE_KINDS, Paper
from speclib.papers.table_result import TableResult
from speclib.views.tables.html import (
    failures_html,
    summary_html,
    table_html,
    verdicts_html,
)
from speclib.views.tables.tally import count

from .layout import render

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
        "failed": failures_html(errors),
    }


def _headline(results: Mapping[str, TableResult]) -> TableResult:
    """The first item with the most kinds of number; tables go before figures."""

    def rank(result: TableResult) -> tuple[int, bool]:
        return len(result.kinds), result.table.item.startswith("table")

    return max(results.values(), key=rank)


def index_page(entries: Sequence[IndexEntry], facts: Mapping[str, str]) -> str:
    """The index over ``entries``, as ``summary`` makes them.

    Each entry has one more text, ``made``, which says when it was made and from which
    state of the repository. ``facts`` describe the machine.
    """
    title = "speclib: reports"
    return render("index.html", title=title, entries=entries, facts=facts)
