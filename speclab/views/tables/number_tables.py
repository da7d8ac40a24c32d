"""All numbers of a table, in small tables that fit a page.

Print and prediction share a table, since a reader compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from speclab.papers.ledger import OVER_SAME_DEVICES, LedgerLine
from speclab.papers.paper_schema import KINDS, Table, matches_any
from speclab.papers.table_result import DISTURBED, LOOKS_UP_OURS, TableResult
from speclib.drawing.numbers import DASH

from .main_quantity import is_main_line
from .written import write_number

WIDEST = 8  # columns of a table, including the row names
LONG = 24  # a table with more rows shows only what was printed

REASONS_FOR_EMPTY = ("not reported", "lost")  # possible starts of a note
MEANINGS = {
    "c": "*c*: this printed cell set the acceptance rate or the clock",
    "†": "†: see errata",
    "‡": "‡: other programs kept the machine busy, so no claim is judged by it",
    "¶": "¶: its datastore contains our own tasks, which resemble the prompts, so it "
    "is faster than with its paper's texts",
}

Texts = dict[tuple[str, str], str]  # of cells, by row and column


class PipeTable(NamedTuple):
    """A table of texts; ``caption`` is above it."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


def tables_of_numbers(result: TableResult) -> list[PipeTable]:
    """Print and prediction side by side, and then every other kind.

    A long table without printed numbers to compare with is left out.
    """
    table = result.table
    texts = {kind: _texts(table, result.lines, kind) for kind in KINDS}
    unit = table.shown_unit
    tables = []
    if texts["paper"] and texts["virtual"]:
        both = {}
        for cell in {**texts["paper"], **texts["virtual"]}:
            predicted = texts["virtual"].get(cell, DASH)
            both[cell] = f"{predicted} / {texts['paper'].get(cell, DASH)}"
        tables += tables_that_fit(table, both, f"`virtual` / `paper`, {unit}")
        del texts["paper"], texts["virtual"]
    for kind, of_kind in texts.items():
        if table.cells or len({row for row, _ in of_kind}) <= LONG:
            tables += tables_that_fit(table, of_kind, f"`{kind}`, {unit}")
    return tables


def tables_of_others(
    result: TableResult, others: Iterable[LedgerLine]
) -> list[PipeTable]:
    """The numbers of other machines, in a table for each machine and kind."""
    by_source: dict[str, list[LedgerLine]] = {}
    for line in others:
        machine = line.setup.partition("@")[2].split("/")[0]
        by_source.setdefault(f"`{line.kind}` @ {machine}", []).append(line)
    tables = []
    for caption, lines in by_source.items():
        texts = _texts(result.table, lines, lines[0].kind)
        tables += tables_that_fit(result.table, texts, caption)
    return tables


def _texts(table: Table, lines: Iterable[LedgerLine], kind: str) -> Texts:
    """The numbers of one kind as texts, by row and column."""
    texts = {}
    for line in lines:
        is_cell = is_main_line(table, line) and "*" not in (line.row, line.column)
        if is_cell and line.kind == kind:
            texts[line.row, line.column] = _write(table, line)
    return texts


def tables_over_same_devices(result: TableResult) -> list[PipeTable]:
    """Speed-ups over the fastest plain decoding on the same devices.

    For the main quantity, or for all cells if the table names none.
    """
    main = result.table.main
    tables = []
    for kind in KINDS:
        texts = {}
        for line in result.lines:
            is_shown = main is None or {line.row, line.column} & set(main.labels)
            is_second = line.metric == OVER_SAME_DEVICES and line.kind == kind
            if is_second and is_shown and line.value is not None:
                texts[line.row, line.column] = write_number(line.value, 2)
        tables += tables_that_fit(result.table, texts, f"`{kind}`")
    return tables


def signs_in(tables: Iterable[PipeTable]) -> list[str]:
    """The meanings of the signs in the cells of the tables."""
    cells = " ".join(cell for table in tables for row in table.rows for cell in row)
    signs = {"c": "*c*", "†": "†", "‡": "‡", "¶": "¶"}
    return [MEANINGS[name] for name, sign in signs.items() if sign in cells]


# -- layout ----------------------------------------------------------------------------
def tables_that_fit(table: Table, texts: Texts, caption: str) -> list[PipeTable]:
    """Rows and columns as printed; transposed or split if there are too many."""
    rows = _in_order(table.row_labels, (row for row, _ in texts))
    columns = _in_order(table.column_labels, (column for _, column in texts))
    if not rows:
        return []

    if len(columns) >= WIDEST and len(rows) < len(columns):
        turned = {(column, row): text for (row, column), text in texts.items()}
        return _split(table.columns_are, columns, rows, turned, caption)
    return _split(table.rows, rows, columns, texts, caption)


def _split(
    head: str,
    rows: list[str],
    columns: list[str],
    texts: Texts,
    caption: str,
) -> list[PipeTable]:
    tables = []
    parts = ceil(len(columns) / (WIDEST - 1))
    most = ceil(len(columns) / parts)  # so that all parts are about equally wide
    for start in range(0, len(columns), most):
        part = columns[start : start + most]
        lines = []
        for row in rows:
            cells = [texts.get((row, column), DASH) for column in part]
            if set(cells) != {DASH}:
                lines.append([row, *cells])
        tables.append(PipeTable(caption, [head, *part], lines))
    return tables


def _in_order(labels: Iterable[str], found: Iterable[str]) -> list[str]:
    """The labels in ``found``, in the table's order; unknown labels come last."""
    present = dict.fromkeys(found)
    known = [label for label in labels if label in present]
    return list(dict.fromkeys([*known, *present]))


# -- cells -----------------------------------------------------------------------------
def _write(table: Table, line: LedgerLine) -> str:
    """A number with its signs, and a printed one with its number in brackets."""
    if line.value is None:
        note = line.note.removeprefix("undefined; ")
        return next((r for r in REASONS_FOR_EMPTY if note.startswith(r)), DASH)
    text = write_number(line.value * table.scale(line.unit), decimals_of(table, line))
    if line.kind == "paper":
        cells = [cell for erratum in table.errata for cell in erratum.cells]
        has_erratum = matches_any(tuple(cells), line.row, line.column)
        return text + ("†" if has_erratum else "") + _bracket(table, line)
    text += "‡" if DISTURBED in line.note else ""
    text += "¶" if LOOKS_UP_OURS in line.note else ""
    if line.note.startswith("calibration"):
        return f"{text} *c*"
    return text


def decimals_of(table: Table, line: LedgerLine) -> int:
    """As many decimals as the print; two for our ratios if the print has none."""
    decimals: int = table.settings_of(line.row, line.column)["decimals"]
    is_whole = line.value is not None and line.value == round(line.value)
    if decimals or line.kind == "paper" or line.unit != "x" or is_whole:
        return decimals
    return 2


def _bracket(table: Table, line: LedgerLine) -> str:
    """The number that the cell shows in brackets; empty if it has none."""
    if table.beside is None:
        return ""
    for row, column, value in table.beside.cells:
        if (row, column) == (line.row, line.column):
            return f" ({write_number(value, table.beside.decimals)})"
    return ""
