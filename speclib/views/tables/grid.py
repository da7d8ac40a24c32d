"""A filled table as a grid of texts: what HTML and Markdown both show, decided once.

A cell has one entry per source: paper, virtual, emulated, measured, and other machines' numbers.
Reads ledger rows; knows no markup, paper file or clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

ORDER = ("paper", "virtual", "emulated", "measured")
SCALES = {("s", "ms"): 1000.0}  # unit of the data -> unit of the print
COMPARABLE = ("x", "tokens", "runs")  # measured values that another machine's can meet
MISSING = "–"
EMPTY = ("failed", "not reported", "lost")  # notes that say why a cell has no value
WIDE = 12  # more columns than this don't fit beside each other


class Source(NamedTuple):
    """A sub-column: a kind, and the machine where it was not this one."""

    kind: str
    machine: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind} @ {self.machine}" if self.machine else self.kind


class Entry(NamedTuple):
    """One number as text. ``error``: relative, against print (of a printed cell: its second
    number, in brackets); ``spread``: its 95 % interval and n; ``note``: the ledger's; ``mark``:
    "c" calibration, "†" erratum, "" none."""

    text: str
    error: str = ""
    spread: str = ""
    note: str = ""
    mark: str = ""


class Grid(NamedTuple):
    """``cells``: (row, column) -> source -> Entry. ``unit`` is the one the numbers are shown in;
    ``rows_are`` and ``columns_are`` name the two axes."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sources: tuple[Source, ...]
    cells: dict[tuple[str, str], dict[Source, Entry]]
    unit: str
    rows_are: str
    columns_are: str

    def narrow(self) -> Grid:
        """Itself, or, where its columns are too many, with rows and columns exchanged."""
        if len(self.columns) <= WIDE:
            return self
        cells = {(column, row): found for (row, column), found in self.cells.items()}
        return Grid(
            self.columns,
            self.rows,
            self.sources,
            cells,
            self.unit,
            self.columns_are,
            self.rows_are,
        )

    def entry(self, row: str, column: str, source: Source) -> Entry:
        return self.cells.get((row, column), {}).get(source, Entry(MISSING))

    def columns_of(self, column: str) -> tuple[Source, ...]:
        """The sources that have anything in ``column``; print alone if none has."""
        used = {
            s for (_, c), entries in self.cells.items() if c == column for s in entries
        }
        return tuple(s for s in self.sources if s in used) or self.sources[:1]


def grid(filled, others: Iterable = ()) -> Grid:
    """The grid of a ``TableResult``; ``others``: ledger rows of other machines."""
    table = filled.table
    here, there = _shown(table, filled.rows), _shown(table, others)
    found = [(Source(r.kind), r) for r in here]
    found += [
        (Source(r.kind, r.setup.partition("@")[2].split("/")[0]), r) for r in there
    ]
    printed = {(r.row, r.column): r.value for s, r in found if s.kind == "paper"}
    cells: dict[tuple[str, str], dict[Source, Entry]] = {}
    for source, row in found:
        if row.row != "*" and row.column != "*":
            entry = _entry(table, row, printed.get((row.row, row.column)))
            cells.setdefault((row.row, row.column), {})[source] = entry
    sources = sorted(
        {s for s, _ in found}, key=lambda s: (ORDER.index(s.kind), s.machine)
    )
    return Grid(
        _labels(table.row_labels, (r for r, _ in cells)),
        _labels(table.column_labels, (c for _, c in cells)),
        tuple(sources),
        cells,
        shown_unit(table),
        table.rows,
        table.columns_are,
    )


def shown_unit(table) -> str:
    """The unit that a table's numbers are shown in; columns of another one say it themselves."""
    scaled = (table.unit, table.printed_unit) in SCALES
    return table.printed_unit if scaled else table.unit


def _labels(printed: Iterable[str], found: Iterable[str]) -> tuple[str, ...]:
    found = list(found)
    return tuple(
        label for label in dict.fromkeys([*printed, *found]) if label in set(found)
    )


def _shown(table, rows: Iterable) -> list:
    """The rows a cell shows: not numbers in brackets, nor a speed-up's second definition."""
    beside = table.beside.metric if table.beside else None
    return [
        r
        for r in rows
        if r.item == table.item and r.metric not in (beside, "speedup_e2e")
    ]


def _entry(table, row, printed: float | None) -> Entry:
    if row.value is None:
        said = (why for why in EMPTY if row.note.startswith(why))
        return Entry(next(said, MISSING), note="" if row.kind == "paper" else row.note)
    s = table.settings_of(row.row, row.column)
    scale = SCALES.get((row.unit, table.printed_unit), 1.0)
    text = number(row.value * scale, digits(row, s["decimals"]))
    if row.kind == "paper":
        errata = _errata(table, row)
        return Entry(
            text, _bracket(table, row), note=errata, mark="†" if errata else ""
        )
    comparable = row.kind != "measured" or row.unit in COMPARABLE
    error = percent(row.value / printed - 1) if printed and comparable else ""
    mark = "c" if row.note.startswith("calibration") else ""
    return Entry(text, error, spread(row, scale, s["decimals"]), row.note, mark)


def _bracket(table, row) -> str:
    """The number printed in brackets, if the cell has one."""
    cells = table.beside.cells if table.beside else ()
    return next(
        (
            f"({number(v, table.beside.decimals)})"
            for r, c, v in cells
            if (r, c) == (row.row, row.column)
        ),
        "",
    )


def _errata(table, row) -> str:
    return "; ".join(
        " ".join(e.note.split())
        for e in table.errata
        if any(r in (row.row, "*") and c in (row.column, "*") for r, c in e.cells)
    )


def digits(row, printed: int) -> int:
    """As many decimals as the print has; two where the print rounds a ratio to a whole number."""
    whole = isfinite(row.value) and row.value == round(row.value)
    return printed if printed or row.kind == "paper" or row.unit != "x" or whole else 2


def number(value: float, decimals: int) -> str:
    return (
        MISSING if not isfinite(value) else f"{value:z.{decimals}f}"
    )  # z: no minus zero


def percent(share: float) -> str:
    """Signed, whole percents from ten on; a true minus sign."""
    if not isfinite(share):
        return ""
    text = f"{100 * share:+.1f}" if abs(share) < 0.0995 else f"{100 * share:+.0f}"
    return (text if float(text) else "0").replace("-", "\N{MINUS SIGN}") + " %"


def spread(row, scale: float, decimals: int) -> str:
    """The interval and its n, as ``1.91 .. 1.98 (n 20)``; empty where there is none."""
    if row.low is None or row.high is None:
        return ""
    places = digits(row, decimals)
    return f"{number(row.low * scale, places)} .. {number(row.high * scale, places)} (n {row.n})"


def sources_of(filled, others: Iterable = ()) -> dict[str, list[str]]:
    """Kind -> where its numbers come from, as lines: files; machine, n, day, and which models."""
    lines: dict[str, dict[str, dict[str, None]]] = {}
    for row in [*_shown(filled.table, filled.rows), *_shown(filled.table, others)]:
        if row.value is None:
            continue
        pair, at, machine = row.setup.partition("@")
        line, models = row.source or row.setup, {}
        if at:
            day = " ".join(row.source.split()[:2])  # of a mean of cells, none
            line = ", ".join(filter(None, [machine, f"n = {row.n}", day]))
            models = {f"{pair} (dilated)" if "dilated" in row.note else pair: None}
        lines.setdefault(row.kind, {}).setdefault(line, {}).update(models)
    return {
        kind: [
            f"{line}: {', '.join(models)}" if models else line
            for line, models in found.items()
        ]
        for kind, found in lines.items()
    }


def by_reason(errors: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Why cells failed -> which: one cause often fails many."""
    found: dict[str, list[str]] = {}
    for name, why in errors.items():
        found.setdefault(why, []).append(name)
    return list(found.items())
