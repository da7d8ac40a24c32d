"""A table's result as a grid of texts: what HTML and Markdown show, decided once.

Every cell has one entry per source. A source is a kind of number (paper, virtual,
emulated, measured), and the machine where that was not this one. Reads ledger lines;
knows no markup, no file of a paper and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

from speclab.papers.ledger import DEVICE_SECONDS, OVER_SAME_DEVICES, LedgerLine
from speclab.papers.paper_schema import ENGINE_KINDS, KINDS, Table, matches_any
from speclab.papers.table_result import (
    COMPARABLE_UNITS,
    DISTURBED,
    LOOKS_UP_OURS,
    TableResult,
)
from speclab.views.anchors import cell_anchor
from speclib.drawing.numbers import DASH


def write_number(value: float, decimals: int) -> str:
    """``value`` with so many decimals, a dash where it is not finite."""
    if not isfinite(value):
        return DASH
    return f"{value:z.{decimals}f}"  # z: no minus before a zero


def write_difference(share: float) -> str:
    """A relative difference as "+4.2 %", or "−19 %" in whole per cent from ten on.

    Empty where it is not finite.
    """
    if not isfinite(share):
        return ""
    decimals = 1 if abs(share) < 0.0995 else 0
    text = f"{100 * share:+.{decimals}f}"
    if float(text) == 0:
        return "0 %"
    return text.replace("-", "\N{MINUS SIGN}") + " %"


def write_interval(line: LedgerLine, scale: float, printed_decimals: int) -> str:
    """The 95 % interval of a line, as "1.91 .. 1.98"; empty where it has none.

    ``scale`` leads from the ledger's unit to the one that is shown.
    """
    if line.low is None or line.high is None:
        return ""
    decimals = decimals_of(line, printed_decimals)
    low = write_number(line.low * scale, decimals)
    high = write_number(line.high * scale, decimals)
    return f"{low} .. {high}"


def decimals_of(line: LedgerLine, printed_decimals: int) -> int:
    """As many decimals as the print has.

    A ratio of ours gets two where the print rounds to a whole number, unless it is a
    whole number, too.
    """
    is_own_ratio = line.kind != "paper" and line.unit == "x"
    if printed_decimals or not is_own_ratio or line.value is None:
        return printed_decimals
    is_whole = isfinite(line.value) and line.value == round(line.value)
    return printed_decimals if is_whole else 2


SCALES = {("s", "ms"): 1000.0}  # from the unit of the data to that of the print
REASONS_FOR_EMPTY = ("not reported", "lost")  # how a note may begin
NOT_RUN = "not run yet"
DISTURBED_MARK = "‡"
DISTURBED_IN_WORDS = (
    f"{DISTURBED_MARK}: other programs kept the machine busy while this was measured; "
    "no claim is judged by it"
)
LOOKS_UP_MARK = "¶"
LOOKS_UP_IN_WORDS = (
    f"{LOOKS_UP_MARK}: what it looks up are tasks of ours, which no model was trained "
    "on, but which are put together like the prompts; so it is faster than with the "
    "texts of its paper"
)
SAME_DEVICES = "over the same devices"
SAME_DEVICES_IN_WORDS = (
    f"same: {SAME_DEVICES}, which is the speed-up over the best that all devices which "
    "the method reserves can do with plain decoding; of plain decoding itself, how "
    "much of that it does as it was run"
)
WIDE = 12  # more columns than this do not fit beside each other


class Source(NamedTuple):
    """Where a number comes from: its kind, and another machine's name or ""."""

    kind: str
    machine: str = ""

    @property
    def label(self) -> str:
        """The head of the column: "virtual", "measured @ epyc-64c"."""
        return f"{self.kind} @ {self.machine}" if self.machine else self.kind


@dataclass(frozen=True)
class Entry:
    """One number as text.

    ``difference`` is relative to print. ``bracket`` is the second number that a printed
    cell has, in brackets. ``interval`` is the 95 % interval, and ``n`` of how many
    requests the number is, as "n 20"; ``note`` is that of the ledger. ``mark`` is "c"
    for a cell that calibrated a run, "†" for one with an erratum, else empty.
    ``anchor`` is that of the number on the paper's page. ``is_disturbed`` says that
    other programs kept the machine busy while the number was measured, and
    ``looks_up_ours`` that its method looked up tasks of ours. ``same_devices`` is the
    second number of a speed-up, over the best that the same devices do with plain
    decoding, and ``about_devices`` how that was found.
    """

    text: str
    difference: str = ""
    bracket: str = ""
    interval: str = ""
    n: str = ""
    note: str = ""
    mark: str = ""
    anchor: str = ""
    is_disturbed: bool = False
    looks_up_ours: bool = False
    same_devices: str = ""
    about_devices: str = ""

    @property
    def second(self) -> str:
        """The number over the same devices, as it stands beside the first one."""
        return f"same {self.same_devices}" if self.same_devices else ""

    @property
    def sign(self) -> str:
        """Signs on the number, which a line under the table explains."""
        disturbed = DISTURBED_MARK if self.is_disturbed else ""
        looks_up_ours = LOOKS_UP_MARK if self.looks_up_ours else ""
        return disturbed + looks_up_ours


MISSING = Entry(DASH)


def why_empty(table: Table) -> str:
    """What stands in place of a table without a single number."""
    kinds = [kind for kind in ENGINE_KINDS if table.paper.fills(table.item, kind)]
    if not kinds:
        return "The text we transcribed from holds no number of it."
    return (
        f"No number yet: it has {', '.join(kinds)} numbers alone, and none of them has "
        "been run here. `make reproduce` runs them."
    )


@dataclass(frozen=True)
class Grid:
    """The cells of a table by (row, column), and in each its entries by source.

    ``unit`` is the one in which the numbers are shown. ``rows_are`` and ``columns_are``
    name the two axes. ``not_run`` are kinds that could have numbers and have none yet.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sources: tuple[Source, ...]
    cells: dict[tuple[str, str], dict[Source, Entry]]
    unit: str
    rows_are: str
    columns_are: str
    not_run: tuple[str, ...] = ()

    def narrow(self) -> Grid:
        """This grid; with rows and columns exchanged where it has too many columns."""
        if len(self.columns) <= WIDE:
            return self
        exchanged = {}
        for (row, column), entries in self.cells.items():
            exchanged[column, row] = entries
        return replace(
            self,
            rows=self.columns,
            columns=self.rows,
            cells=exchanged,
            rows_are=self.columns_are,
            columns_are=self.rows_are,
        )

    @property
    def sign_meanings(self) -> list[str]:
        """What its signs mean, as far as it has them, and what was not run."""
        entries: list[Entry] = []
        for entries_by_source in self.cells.values():
            entries += entries_by_source.values()
        meanings = []
        if any(entry.is_disturbed for entry in entries):
            meanings.append(DISTURBED_IN_WORDS)
        if any(entry.looks_up_ours for entry in entries):
            meanings.append(LOOKS_UP_IN_WORDS)
        if any(entry.same_devices for entry in entries):
            meanings.append(SAME_DEVICES_IN_WORDS)
        if self.not_run and self.cells:
            meanings.append(f"{NOT_RUN}: {', '.join(self.not_run)}")
        return meanings

    def entry(self, row: str, column: str, source: Source) -> Entry:
        """What a cell shows of a source, a dash where there is nothing."""
        return self.cells.get((row, column), {}).get(source, MISSING)

    def sources_in(self, column: str) -> tuple[Source, ...]:
        """The sources that have anything in a column; the first one if none has."""
        used: set[Source] = set()
        for (_, column_of_cell), entries in self.cells.items():
            if column_of_cell == column:
                used.update(entries)
        in_order = tuple(source for source in self.sources if source in used)
        return in_order or self.sources[:1]


def build_grid(result: TableResult, others: Iterable[LedgerLine] = ()) -> Grid:
    """The grid of a table's result; ``others`` are ledger lines of other machines."""
    table = result.table
    lines_by_source = _lines_with_sources(table, result.lines, others)
    printed = {}
    for source, line in lines_by_source:
        if source.kind == "paper":
            printed[line.row, line.column] = line.value

    cells: dict[tuple[str, str], dict[Source, Entry]] = {}
    for source, line in lines_by_source:
        cell = (line.row, line.column)
        if "*" not in cell:  # which is a note on many cells, not a cell
            entry = _describe(table, line, printed.get(cell))
            anchor = cell_anchor(table.item, line.row, line.column, source.label)
            anchored = replace(entry, anchor=anchor)
            cells.setdefault(cell, {})[source] = anchored
    for line in result.lines:
        own_source = Source(line.kind)
        entries = cells.get((line.row, line.column), {})
        if line.metric == OVER_SAME_DEVICES and own_source in entries:
            entries[own_source] = _with_second_number(table, entries[own_source], line)
    kinds = {line.kind for line in result.lines}
    left_out = {kind for _, _, kind in result.left_out}
    for row, column, kind in sorted(result.left_out):
        if kind in kinds:
            entry = _describe_left_out(result, row, column, kind)
            cells.setdefault((row, column), {}).setdefault(Source(kind), entry)

    return Grid(
        rows=_labels_in_order(table.row_labels, [row for row, _ in cells]),
        columns=_labels_in_order(table.column_labels, [column for _, column in cells]),
        sources=_sources_in_order(s for entries in cells.values() for s in entries),
        cells=cells,
        unit=shown_unit(table),
        rows_are=table.rows,
        columns_are=table.columns_are,
        not_run=tuple(k for k in KINDS if k in left_out and k not in kinds),
    )


def shown_unit(table: Table) -> str:
    """The unit in which a table's numbers are shown.

    Columns of another unit say it themselves.
    """
    if table.printed_unit and (table.unit, table.printed_unit) in SCALES:
        return table.printed_unit
    return table.unit


def lines_of_cells(table: Table, lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Those of the ledger's lines that are the main number of one of the table's cells.

    Left out are numbers in brackets, a speed-up by its second definition, and what goes
    with a speed-up over the same devices.
    """
    left_out = ["speedup_e2e", OVER_SAME_DEVICES]
    if table.beside:
        left_out.append(table.beside.metric)

    shown = []
    for line in lines:
        is_own = line.item == table.item and line.metric not in left_out
        if is_own and (line.metric != DEVICE_SECONDS or _asks_for(table, line)):
            shown.append(line)
    return shown


def _asks_for(table: Table, line: LedgerLine) -> bool:
    """Whether a line's metric is the one that its cell is there for."""
    return bool(table.settings_of(line.row, line.column)["metric"] == line.metric)


def _lines_with_sources(
    table: Table, lines: Iterable[LedgerLine], others: Iterable[LedgerLine]
) -> list[tuple[Source, LedgerLine]]:
    """The lines that cells show: first those of this machine, then those of others."""
    sourced = [(Source(line.kind), line) for line in lines_of_cells(table, lines)]
    for line in lines_of_cells(table, others):
        machine = line.setup.partition("@")[2].split("/")[0]
        sourced.append((Source(line.kind, machine), line))
    return sourced


def _labels_in_order(
    labels_of_table: Iterable[str], labels_of_cells: list[str]
) -> tuple[str, ...]:
    """The labels that cells have: in the table's order, then those it does not name."""
    in_order = dict.fromkeys([*labels_of_table, *labels_of_cells])
    present = set(labels_of_cells)
    return tuple(label for label in in_order if label in present)


def _sources_in_order(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Each source once: by kind, then by machine."""

    def rank(source: Source) -> tuple[int, str]:
        return KINDS.index(source.kind), source.machine

    return tuple(sorted(set(sources), key=rank))


# -- entries ---------------------------------------------------------------------------
def _describe(table: Table, line: LedgerLine, printed: float | None) -> Entry:
    """The entry of a line; ``printed`` is what the paper prints in its cell."""
    if line.value is None:
        return _describe_empty(line)
    if line.kind == "paper":
        return _describe_printed(table, line, line.value)
    return _describe_own(table, line, line.value, printed)


def _describe_empty(line: LedgerLine) -> Entry:
    """Why a cell has no value, or a dash."""
    text = DASH
    for reason in REASONS_FOR_EMPTY:
        if line.note.removeprefix("undefined; ").startswith(reason):
            text = reason
    return Entry(text, note="" if line.kind == "paper" else line.note)


def _describe_left_out(result: TableResult, row: str, column: str, kind: str) -> Entry:
    """Why a cell that is to be run has no line."""
    run = f"{result.table.item}, {row}, {column}: {kind} "
    has_failed = any(name.startswith(run) for name in result.errors)
    return Entry("failed" if has_failed else NOT_RUN)


def _describe_printed(table: Table, line: LedgerLine, value: float) -> Entry:
    errata = "; ".join(_errata_of_cell(table, line))
    return Entry(
        _write_value(table, line, value),
        bracket=_bracket(table, line),
        note=errata,
        mark="†" if errata else "",
    )


def _describe_own(
    table: Table, line: LedgerLine, value: float, printed: float | None
) -> Entry:
    difference = ""
    is_comparable = line.kind != "measured" or line.unit in COMPARABLE_UNITS
    if printed and is_comparable:
        difference = write_difference(value / printed - 1)
    return Entry(
        _write_value(table, line, value),
        difference=difference,
        interval=write_interval(
            line, _scale(table, line), _printed_decimals(table, line)
        ),
        n=f"n {line.n}" if line.n else "",
        note=line.note,
        mark="c" if line.note.startswith("calibration") else "",
        is_disturbed=DISTURBED in line.note,
        looks_up_ours=LOOKS_UP_OURS in line.note,
    )


def _with_second_number(table: Table, entry: Entry, line: LedgerLine) -> Entry:
    """The entry of a speed-up with its number over the same devices, ``line``."""
    if line.value is None:
        return entry
    return replace(
        entry,
        same_devices=_write_value(table, line, line.value),
        about_devices=line.note,
    )


def _write_value(table: Table, line: LedgerLine, value: float) -> str:
    decimals = decimals_of(line, _printed_decimals(table, line))
    return write_number(value * _scale(table, line), decimals)


def _scale(table: Table, line: LedgerLine) -> float:
    """What leads from the unit of a line to the printed one."""
    return SCALES.get((line.unit, table.printed_unit or line.unit), 1.0)


def _printed_decimals(table: Table, line: LedgerLine) -> int:
    decimals: int = table.settings_of(line.row, line.column)["decimals"]
    return decimals


def _bracket(table: Table, line: LedgerLine) -> str:
    """The number that the cell prints in brackets, or nothing."""
    if table.beside is None:
        return ""
    for row_label, column_label, value in table.beside.cells:
        if (row_label, column_label) == (line.row, line.column):
            return f"({write_number(value, table.beside.decimals)})"
    return ""


def _errata_of_cell(table: Table, line: LedgerLine) -> list[str]:
    """The notes of all errata that name a line's cell."""
    notes = []
    for erratum in table.errata:
        if matches_any(erratum.cells, line.row, line.column):
            notes.append(" ".join(erratum.note.split()))
    return notes
