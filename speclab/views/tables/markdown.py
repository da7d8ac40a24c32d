"""A paper's tables and verdicts as Markdown, for a repository's web page.

The text is deterministic and has no link. There is one line per cell, so that a change
of one number is a change of one line. Knows no run and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from speclab.papers.fill import TIMED_KINDS
from speclab.papers.ledger import LedgerLine, VerdictLine
from speclab.papers.paper_schema import Paper
from speclab.papers.table_result import TableResult
from speclab.views.templates import load_templates
from speclib.drawing.numbers import DASH

from .grid import SAME_DEVICES, Entry, Grid, Source, why_empty
from .html import LONG
from .section import Section, gather_section
from .verdicts import COUNT_HEADS, KIND_HEAD, SIGNS, ClaimTable, count

TEMPLATES = load_templates(Path(__file__).parent / "templates", long=LONG)


class PipeTable(NamedTuple):
    """A Markdown table; all but the first ``left`` columns are aligned right."""

    heads: list[str]
    rows: list[list[str]]
    left: int = 1

    @property
    def lines(self) -> list[list[str]]:
        """The cells of every line: the heads, the rule below them, the rows."""
        rule = []
        for column in range(len(self.heads)):
            rule.append("---" if column < self.left else "---:")
        return [self.heads, rule, *self.rows]


def paper_md(
    paper: Paper, results: Mapping[str, TableResult], others: Iterable[LedgerLine] = ()
) -> str:
    """The whole page of one paper; ``others`` are ledger lines of other machines."""
    others = list(others)
    sections = [section_md(result, others) for result in results.values()]
    names = {"paper": paper, "pipes": _summary(results), "sections": sections}
    return _render("paper.md", names) + "\n"


def section_md(result: TableResult, others: Iterable[LedgerLine] = ()) -> str:
    """One table: what to look at, its numbers, verdicts, errata, sources."""
    return _render("section.md", _names_of_section(gather_section(result, others)))


def summary_md(results: Mapping[str, TableResult]) -> str:
    """How many numbers of each kind there are, and how many claims hold or are open."""
    return _render("pipes.md", {"pipes": _summary(results)})


# -- what templates ask for ------------------------------------------------------------
def _render(name: str, names: Mapping[str, object]) -> str:
    return TEMPLATES.get_template(name).render(names).rstrip("\n")


def _names_of_section(section: Section) -> dict[str, object]:
    """A section's parts, by the names that templates use."""
    grid = section.grid
    # A timed number stands with its interval, for which there is a column then.
    is_as_printed = len(grid.sources) == 1 and grid.sources[0].kind not in TIMED_KINDS
    if is_as_printed:
        grid = grid.narrow()
        numbers = _as_printed(grid)
    else:
        numbers = _line_per_cell(grid)
    return {
        "heading": section_heading(section.table.item, section.table.title),
        "section": section,
        "grid": grid,
        "why_empty": why_empty(section.table),
        "is_as_printed": is_as_printed,
        "numbers": numbers,
        "sign_meanings": grid.sign_meanings,
        "claims": _claims(section.claims) if section.claims else None,
    }


def section_heading(item: str, title: str) -> str:
    """The heading of a table's section: "Blog figure 1: Speed-up by task"."""
    name = item.replace("-", " ").capitalize()
    return f"{name}: {title}"


def _summary(results: Mapping[str, TableResult]) -> PipeTable:
    rows = []
    for kind, counts in count(results).items():
        numbers = [str(number) for number in counts.values()]
        rows.append([f"`{kind}`", *numbers])
    return PipeTable([KIND_HEAD, *COUNT_HEADS.values()], rows)


# -- numbers ---------------------------------------------------------------------------
def _as_printed(grid: Grid) -> PipeTable:
    """The rows and columns of the print, where only that is known."""
    source = grid.sources[0]
    rows = []
    for row in grid.rows:
        entries = [grid.entry(row, column, source) for column in grid.columns]
        rows.append([row, *map(_write_printed, entries)])
    return PipeTable([grid.rows_are, *grid.columns], rows)


def _line_per_cell(grid: Grid) -> PipeTable:
    """A line per cell, with columns for each source."""
    heads = [grid.columns_are, grid.rows_are]
    for source in grid.sources:
        heads += _heads_of_source(source)

    rows = []
    for column in grid.columns:
        name = column
        for row in grid.rows:
            if (row, column) in grid.cells:
                rows.append([name, row, *_texts_of_cell(grid, row, column)])
                name = ""  # a group's name stands in its first line only
    return _without_empty_columns(PipeTable(heads, rows, left=2))


def _heads_of_source(source: Source) -> list[str]:
    if source.kind == "paper":
        return [source.label]
    return [source.label, "against print", "95 %", SAME_DEVICES]


def _texts_of_cell(grid: Grid, row: str, column: str) -> list[str]:
    """What stands under the heads of all sources."""
    texts = []
    for source in grid.sources:
        entry = grid.entry(row, column, source)
        if source.kind == "paper":
            texts.append(_write_printed(entry))
        else:
            sure = f"{entry.interval} ({entry.n})" if entry.interval else entry.n
            texts += [_write_marked(entry), entry.difference, sure, entry.same_devices]
    return texts


def _write_printed(entry: Entry) -> str:
    """A number with its mark, the one in brackets, and a speed-up's second one."""
    text = f"{_write_marked(entry)} {entry.bracket}".rstrip()
    return f"{text}, {entry.second}" if entry.second else text


def _write_marked(entry: Entry) -> str:
    text = entry.text + entry.sign
    if entry.mark == "c":
        return f"{text} *c*"
    return f"{text}{entry.mark}"


def _without_empty_columns(table: PipeTable) -> PipeTable:
    """The table without columns of numbers in which no row has anything."""
    filled = []
    for column in range(len(table.heads)):
        texts = {row[column] for row in table.rows}
        if column < table.left or texts - {"", DASH}:
            filled.append(column)
    heads = [table.heads[column] for column in filled]
    rows = []
    for row in table.rows:
        rows.append([row[column] for column in filled])
    return PipeTable(heads, rows, table.left)


# -- verdicts --------------------------------------------------------------------------
def _claims(claims: ClaimTable) -> PipeTable:
    """A line per claim, a column per kind of number."""
    rows = []
    for line in claims.lines:
        claim = f"{line.claim.text} ({line.claim.source})"
        verdicts = [_write_verdict(verdict) for verdict in line.verdicts]
        rows.append([claim, line.expected, *verdicts])
    heads = ["claim", "expected", *claims.kinds]
    return PipeTable(heads, rows, left=len(heads))


def _write_verdict(verdict: VerdictLine | None) -> str:
    """Whether the claim holds, what was found, and why, where it does not just hold."""
    if verdict is None:
        return DASH
    sign = SIGNS[verdict.holds]
    text = f"{sign.mark} {sign.words}"
    if verdict.value:
        text += f" **{verdict.value}**"
    if verdict.note:
        text += f" ({verdict.note})"
    return text
