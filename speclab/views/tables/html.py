"""Tables and verdicts as HTML: the kinds of number side by side, no script, no link.

Colours are mixed from the reader's own text colour, so that light and dark pages both
work. Every table scrolls inside its own box.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mistune import create_markdown

from speclab.papers.fill import TIMED_KINDS
from speclab.papers.ledger import LedgerLine
from speclab.papers.paper_schema import Table
from speclab.papers.table_result import TableResult
from speclab.views.anchors import claim_anchor
from speclab.views.templates import load_templates
from speclib.drawing.numbers import DASH

from .grid import Entry, Grid, why_empty
from .section import gather_section
from .verdicts import COUNT_HEADS, KIND_HEAD, SIGNS, count

HERE = Path(__file__).parent
STYLE = f"<style>{(HERE / 'tables.css').read_text('utf-8')}</style>"
LONG = 24  # tables with more rows than this are folded

RENDER_MARKDOWN = create_markdown(escape=True)


def section_html(result: TableResult, others: Iterable[LedgerLine] = ()) -> str:
    """All of a table: what to look at, numbers, verdicts, errata, sources.

    ``others`` are ledger lines of other machines.
    """
    section = gather_section(result, others)
    names = {
        "look": section.look,
        "opening": prose_html(section.opening),
        "failures": section.failures,
        "claims": section.claims,
        "background": prose_html(section.background),
        "errata": section.errata,
        "sources": section.sources,
    }
    return _render(
        "section.html", names | _names_of_numbers(result.table, section.grid)
    )


def summary_html(results: Mapping[str, TableResult]) -> str:
    """How many numbers of each kind there are, and how many claims hold or are open."""
    heads = [KIND_HEAD, *COUNT_HEADS.values()]
    return _render("summary.html", {"heads": heads, "counts": count(results)})


# -- what templates ask for ------------------------------------------------------------
def _names_of_numbers(table: Table, grid: Grid) -> dict[str, object]:
    """What ``numbers.html`` shows, by the names that it uses."""
    grid = grid.narrow()
    return {
        "table": table,
        "grid": grid,
        "why_empty": why_empty(table),
        "legend": "; ".join(_legend(grid)),
    }


def _legend(grid: Grid) -> list[str]:
    """What the marks and the small print of a table mean, as far as it has them."""
    entries: list[Entry] = []
    for entries_by_source in grid.cells.values():
        entries += entries_by_source.values()
    marks = {entry.mark for entry in entries}
    has_differences = any(entry.difference for entry in entries)

    legend = []
    if has_differences:
        legend.append("small: relative difference to print")
    if any(entry.bracket for entry in entries):
        legend.append("brackets: printed so")
    if "c" in marks:
        legend.append("c: printed cell that set the acceptance rate or the clock")
    if "†" in marks:
        legend.append("†: see errata")
    if any(entry.n for entry in entries):
        legend.append("n: prompts or requests behind the number")
    legend += grid.sign_meanings
    if has_differences:
        legend.append("hover: 95 % interval, window, notes")
    return legend


def _tooltip(entry: Entry) -> str:
    """What appears under the pointer: the interval, n and the ledger's note."""
    parts = [
        entry.interval and f"95 %: {entry.interval}",
        entry.n,
        entry.note,
        entry.about_devices and f"same: {entry.about_devices}",
    ]
    return "; ".join(part for part in parts if part)


TEMPLATES = load_templates(
    HERE / "templates",
    style=STYLE,
    dash=DASH,
    signs=SIGNS,
    timed_kinds=TIMED_KINDS,
    long=LONG,
    tooltip=_tooltip,
    claim_anchor=claim_anchor,
)


def _render(name: str, names: Mapping[str, object]) -> str:
    return TEMPLATES.get_template(name).render(names)


def prose_html(text: str) -> str:
    """HTML of a Markdown text of the data files.

    A tag inside the text is shown, and not obeyed.
    """
    return str(RENDER_MARKDOWN(text))
