"""Fills tables: adds numbers of every kind, and verdicts, to the printed numbers.

    result = fill_all(load_paper("pearl"), Known.here())["table-5"]
    result.frame(), result.lines, result.claims

Timed numbers come from rows, virtual ones from ``data/virtual.csv``. Nothing is run,
except for quick computations (``scripts``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from speclab.runs.official_prompts import official_folder
from speclab.runs.rows import CellRuns, Row, Rows, read_all
from speclab.runs.spec import MeasuredSpec, Spec, ToySpec, VirtualSpec
from speclab.runs.this_machine import known_name
from speclab.runs.values import Value, read_all_values
from speclib.data.latency import load_latency
from speclib.data.pairs import load_pair
from speclib.methods import about

from . import same_devices, virtual_numbers
from .cell_errors import naming_cell
from .devices import reserved_devices
from .ledger import DEVICE_SECONDS, KEY, OVER_SAME_DEVICES, Cell, LedgerLine
from .numbers import Number, average, divide
from .paper_schema import ENGINE_KINDS, KINDS, Paper, Table, matches_any
from .same_devices import SecondNumber
from .scripts import add_scripted_numbers
from .statistics import number_of
from .table_cells import TableCell, cells_to_run
from .table_result import LOOKS_UP_OURS, TableResult
from .verdicts import verdict_line
from .virtual_numbers import VirtualNumber

TIMED_KINDS = ("emulated", "measured")
# An emulated cell is not reported if a larger share of its operations overruns.
MOST_OVERRUNS = 0.01
ALONE = Number(1.0)  # plain decoding over itself


@dataclass
class Known:
    """The sources of a table's numbers.

    rows, values  rows of timed runs, and other timed values
    virtual       virtual numbers
    machine       the machine whose timed numbers come first, if it has any
    errors        why cells failed in the last measurement
    """

    rows: Rows
    values: Sequence[Value] = ()
    virtual: Mapping[tuple[str, str], VirtualNumber] = field(default_factory=dict)
    machine: str | None = None
    errors: Mapping[Spec, str] = field(default_factory=dict)

    @classmethod
    def here(cls, errors: Mapping[Spec, str] | None = None) -> Known:
        """Everything published, and everything run on this machine."""
        return cls(
            Rows(read_all()),
            read_all_values(),
            virtual_numbers.read(),
            known_name(),
            errors or {},
        )

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> Known:
        """Only these rows."""
        return cls(Rows(rows))

    def machine_of(self, cells: Iterable[TableCell]) -> str:
        """The machine to show: this one if it has rows, else the one with the most."""
        counts: Counter[str] = Counter()
        for cell in cells:
            for name in self.rows.machines:
                counts[name] += self.rows.prompts_done(cell.spec, name)
        if self.machine and counts[self.machine]:
            return self.machine
        (most,) = counts.most_common(1) or [("", 0)]
        return most[0] if most[1] else ""


def fill_all(
    paper: Paper,
    known: Known,
    only: Iterable[str] | None = None,
    kinds: Iterable[str] = ENGINE_KINDS,
) -> dict[str, TableResult]:
    """The results of all tables of a paper, or ``only`` of some, by item."""
    results = {}
    for item in only or paper.tables:
        table = paper.table(item)
        cells = cells_to_run(table, kinds)
        results[item] = fill(table, cells, known, known.machine_of(cells), kinds)
    return results


def fill(
    table: Table,
    cells: Sequence[TableCell],
    known: Known,
    machine_name: str,
    kinds: Iterable[str] = ENGINE_KINDS,
) -> TableResult:
    """A table with its printed numbers, its virtual ones, and those of one machine."""
    result = TableResult(table, machine_name)
    _add_printed_lines(result)
    specs = [cell.spec for cell in cells]
    pairs = {spec.pair for spec in specs if isinstance(spec, MeasuredSpec)}
    result.are_stand_ins = any(map(is_stand_in, pairs))
    for cell in cells:
        _add_cell(result, cell, known)
    add_scripted_numbers(result, tuple(kinds), known.values)
    _add_means(result)
    _add_quotients(result)
    _add_verdicts(result)
    return result


def lines_of_others(result: TableResult, known: Known) -> list[LedgerLine]:
    """A table's ledger lines from machines other than the one it shows."""
    cells = cells_to_run(result.table, TIMED_KINDS)
    shown = {line[:KEY] for line in result.lines}
    lines = []
    for name in known.rows.machines:
        if name != result.machine:
            other = fill(result.table, cells, known, name)
            own = [line for line in other.lines if f"@{name}" in line.setup]
            lines += [line for line in own if line[:KEY] not in shown]
    return lines


def is_stand_in(pair: str) -> bool:
    """Whether a pair's target is not the published model on its own hardware."""
    target = load_pair(pair).target
    return (
        target.model == "toy"
        or target.model.startswith("zoo/")
        or target.dilation is not None
    )


# -- the print -------------------------------------------------------------------------
def _add_printed_lines(result: TableResult) -> None:
    table = result.table
    source = table.printed_on or table.paper.address
    for row, column, value in table.cells:
        notes = _errata_notes(table, row, column, beside=False)
        if table.from_formula:
            notes.insert(0, f"from the formula {table.formula}")
        note = "; ".join(notes)
        result.add(row, column, "paper", float(value), source=source, note=note)
    beside = table.beside
    if beside is not None:
        for row, column, value in beside.cells:
            result.add(
                row,
                column,
                "paper",
                float(value),
                metric=beside.metric,
                unit=beside.unit,
                source=source,
                note="; ".join(_errata_notes(table, row, column, beside=True)),
                show=False,
            )
    for note, names in (("lost", table.lost), ("not printed", table.absent)):
        for row, column in names:
            settings = table.column.get(column, {}) | table.row.get(row, {})
            result.add(
                row,
                column,
                "paper",
                None,
                metric=str(settings.get("metric", table.metric)),
                unit=str(settings.get("unit", table.unit)),
                source=source,
                note=note,
            )


def _errata_notes(table: Table, row: str, column: str, beside: bool) -> list[str]:
    """The errata of a cell, or of its number in brackets (``beside``)."""
    return [
        f"{erratum.kind}: {' '.join(erratum.note.split())}"
        for erratum in table.errata
        if erratum.beside == beside and matches_any(erratum.cells, row, column)
    ]


# -- cells -----------------------------------------------------------------------------
class Found(NamedTuple):
    """A cell's number with its second one, and what a reader must know about them."""

    number: Number
    second: SecondNumber | None
    device_seconds: Number | None
    setup: str
    source: str
    notes: list[str]
    c: float


def _add_cell(result: TableResult, cell: TableCell, known: Known) -> None:
    with naming_cell(result.table, cell.row, cell.column):
        if isinstance(cell.spec, VirtualSpec):
            found = _virtual(cell, cell.spec, known)
        else:
            found = _timed(cell, known, result.machine)
    if found is None:
        result.left_out.add(cell.key)
        if cell.spec in known.errors:
            name = f"{result.table.item}, {cell.row}, {cell.column}: {cell.spec.name}"
            result.errors[name] = known.errors[cell.spec]
        return

    note = "; ".join(found.notes)
    printed = result.table.printed(cell.row, cell.column)
    if cell.kind == "virtual" and printed:
        note += f"; {100 * (found.number.value / printed - 1):+.1f} % against print"
    result.add(
        *cell.key, found.number, setup=found.setup, source=found.source, note=note
    )
    if cell.kind == "measured":
        result.cost_ratios[cell.row, cell.column] = found.c
    if found.second is None:
        return
    is_plain = cell.spec.method == "autoregressive"
    result.over_same_devices[cell.key] = ALONE if is_plain else found.second.number
    result.add(
        *cell.key,
        found.second.number,
        metric=OVER_SAME_DEVICES,
        setup=found.setup,
        source=found.source,
        note=found.second.note,
        show=False,
    )
    result.add(
        *cell.key,
        found.device_seconds,
        metric=DEVICE_SECONDS,
        unit="s",
        setup=found.setup,
        source=found.source,
        note=f"devices reserved, busy or not: {found.second.devices}",
        show=False,
    )


def _virtual(cell: TableCell, spec: VirtualSpec, known: Known) -> Found | None:
    """A cell's virtual number."""
    lines = []
    for key in virtual_numbers.keys_of(cell):
        if key not in known.virtual:
            return None
        lines.append(known.virtual[key])
    first, *rest = lines
    number, second = first.number, None
    if cell.stat in same_devices.IF_BOUND:
        bound = same_devices.IF_BOUND[cell.stat]
        gain = same_devices.plain_gain(spec, first.settings, bound)
        number = number.times(1 / gain)
    elif same_devices.is_speedup(cell.stat):
        second = same_devices.virtual_second_number(spec, number, first.settings)
    return Found(
        number,
        second,
        rest[0].number if rest else None,
        setup=spec.latency,
        source=f"data/latency/{spec.latency}.toml",
        notes=_notes(cell, first.gamma, first.how),
        c=first.c,
    )


def _timed(cell: TableCell, known: Known, machine_name: str) -> Found | None:
    """A cell's number from one machine's rows."""
    spec = cell.spec
    runs = known.rows.of(spec, machine_name)
    if runs is None:
        return None
    notes = _notes(cell, runs.gamma, runs.how)
    number, second = number_of(cell.stat, runs, cell.scaled_tokens), None
    if isinstance(spec, MeasuredSpec):
        pair = load_pair(spec.pair)
        dtype = "float32" if spec.dtype == "auto" else spec.dtype
        setup = f"{spec.pair}@{machine_name}/{dtype}/{pair.place.threads}"
        notes += _measured_notes(spec, runs)
        if same_devices.is_speedup(cell.stat):
            plain = [known.rows.of(other, machine_name) for other in cell.plain_specs]
            is_alone = reserved_devices(spec, {}) == 1
            if is_alone or None not in plain:
                present_plain = [each for each in plain if each is not None]
                second = same_devices.measured_second_number(
                    cell.stat, runs, present_plain
                )
    else:
        setup = f"{spec.latency}@{machine_name}"
        overruns = sum(s.overruns for s in runs.stats) / sum(
            s.operations for s in runs.stats
        )
        notes.append(f"overruns {overruns:.1%}")
        if overruns > MOST_OVERRUNS:
            notes.insert(0, "not reported: the machine is too slow or busy for this")
            number = Number(float("nan"))
    return Found(
        number,
        second,
        number_of(DEVICE_SECONDS, runs) if second else None,
        setup,
        source=f"{spec.kind} {runs.date}",
        notes=notes,
        c=runs.c,
    )


def _notes(cell: TableCell, gamma: int | None, how: str) -> list[str]:
    """What a reader must know about a cell's number: its settings and circumstances."""
    spec = cell.spec
    chosen = isinstance(spec, ToySpec) and spec.is_choice and bool(how)
    settings = "" if chosen else ", ".join(f"{n} {v}" for n, v in spec.settings)
    rate = ""
    if isinstance(spec, ToySpec) and spec.method != "autoregressive":
        rate = f"alpha {spec.alpha:g}"
    notes = [
        cell.calibrates,
        rate,
        settings,
        f"cancel {spec.cancel}" if spec.cancel else "",
    ]
    if isinstance(spec, MeasuredSpec):
        notes += [
            "end tokens ignored" if spec.ignore_eos else "",
            f"prompts of {spec.length} tokens" if spec.length else "",
        ]
    else:
        further = f"each further token fed: +{spec.per_token:.1%} of a pass"
        notes += [
            further if spec.per_token else "",
            f"assumed: doubt {spec.doubt:g}" if spec.doubt else "",
            f"over {spec.over[0]}, gamma {spec.over[1]}" if spec.over else "",
        ]
    is_scaled = cell.scaled_tokens and cell.stat.endswith("_runs")
    notes += [
        "" if gamma is None else f"gamma {gamma}",
        how,
        f"scaled to {cell.scaled_tokens} tokens" if is_scaled else "",
    ]
    return [note for note in notes if note]


def _measured_notes(spec: MeasuredSpec, runs: CellRuns) -> list[str]:
    pair = load_pair(spec.pair)
    folder = official_folder(spec.task)
    looks_up_ours = about(spec.method).needs_datastore and pair.datastore is None
    notes = [
        f"c {runs.c:.2f}",
        "models dilated" if pair.target.dilation else "",
        "official prompts" if folder else "our prompts",
        runs.draft,
        f"{runs.differs} of {len(runs.stats)} outputs differ from plain decoding's"
        if runs.differs
        else "",
        LOOKS_UP_OURS if looks_up_ours else "",
    ]
    return [note for note in notes if note]


# -- numbers that are computed from others ---------------------------------------------
def _add_means(result: TableResult) -> None:
    """Adds columns that are the mean of the others, for every kind but paper.

    If a cell is left out, so is the mean: it would be over other columns than the
    printed one.
    """
    table = result.table
    is_mean = {
        c: bool(table.column.get(c, {}).get("mean_of")) for c in table.column_labels
    }
    for kind in ENGINE_KINDS:
        for row in table.row_labels:
            others = [column for column in is_mean if not is_mean[column]]
            keys = [(row, column, kind) for column in others]
            found = [result.numbers[key] for key in keys if key in result.numbers]
            for column in is_mean:
                if not is_mean[column]:
                    continue
                if result.left_out.intersection(keys):
                    result.left_out.add((row, column, kind))
                elif found:
                    _add_mean(result, (row, column, kind), found, keys)


def _add_mean(
    result: TableResult,
    key: tuple[str, str, str],
    found: list[Number],
    keys: list[tuple[str, str, str]],
) -> None:
    setup = result.setup_of_row(key[0], key[2])
    note = f"mean of the other {len(found)} columns"
    result.add(*key, average(found), setup=setup, note=note)
    seconds = [
        result.over_same_devices[k] for k in keys if k in result.over_same_devices
    ]
    if seconds and len(seconds) == len(found):
        mean = average(seconds)
        result.over_same_devices[key] = mean
        result.add(
            *key, mean, metric=OVER_SAME_DEVICES, setup=setup, note=note, show=False
        )


def _add_quotients(result: TableResult) -> None:
    """Adds rows that are one row over another, for every kind but paper."""
    table = result.table
    for row in table.row_labels:
        rows = table.row.get(row, {}).get("quotient_of")
        if not isinstance(rows, tuple):
            continue
        top, bottom = map(str, rows)
        for kind in ENGINE_KINDS:
            for column in table.column_labels:
                of, by = (result.numbers.get((r, column, kind)) for r in (top, bottom))
                if of is not None and by is not None:
                    is_share = table.settings_of(row, column)["unit"] == "%"
                    quotient = divide(of, by).times(100 if is_share else 1)
                    setup, note = result.setup_of_row(top, kind), f"{top} over {bottom}"
                    result.add(row, column, kind, quotient, setup=setup, note=note)
                elif result.left_out & {(top, column, kind), (bottom, column, kind)}:
                    result.left_out.add((row, column, kind))


# -- verdicts --------------------------------------------------------------------------
class TableNumbers:
    """A table's numbers of one kind; for ``paper``, those of other tables, too."""

    def __init__(self, result: TableResult, kind: str):
        self.kind = kind
        self.are_stand_ins = kind == "measured" and result.are_stand_ins
        self._result = result

    def number(self, cell: Cell) -> Number | None:
        table = self._result.table
        if cell.item == table.item:
            return self._result.numbers.get((cell.row, cell.column, self.kind))
        printed = table.paper.printed(*cell) if self.kind == "paper" else None
        return None if printed is None else Number(printed)

    def why_missing(self, cell: Cell) -> str:
        is_own = cell.item == self._result.table.item
        key = (cell.row, cell.column, self.kind)
        return "not run yet" if is_own and key in self._result.left_out else ""

    def cost_ratio(self, row: str, column: str) -> float | None:
        """c as timed; for other kinds as printed, or from the latency file or table."""
        if self.kind == "measured":
            for (own_row, own_column), c in self._result.cost_ratios.items():
                if row in (own_row, "*") and column in (own_column, "*"):
                    return c
            return None
        table = self._result.table
        settings = table.settings_of(row, column)
        with naming_cell(table, row, column):
            if self.kind == "paper" and "printed_c" in settings:
                return float(settings["printed_c"])
            if "latency" in settings:
                return load_latency(settings["latency"]).c
            return float(settings["c"]) if "c" in settings else None


class NumbersOverSameDevices(TableNumbers):
    """A table's speed-ups of one kind, over plain decoding on the same devices.

    Numbers that are not speed-ups are missing.
    """

    asked_for_others = False

    def number(self, cell: Cell) -> Number | None:
        key = (cell.row, cell.column, self.kind)
        number = self._result.over_same_devices.get(key)
        is_own = cell.item == self._result.table.item
        is_other = not is_own or (number is None and key in self._result.numbers)
        self.asked_for_others |= is_other
        return number if is_own else None


def _add_verdicts(result: TableResult) -> None:
    left_out_kinds = {kind for _, _, kind in result.left_out}
    for kind in KINDS:
        if kind not in result.kinds and kind not in left_out_kinds:
            continue
        for claim in result.table.claims:
            if kind not in claim.kinds:
                continue
            numbers = TableNumbers(result, kind)
            result.claims.append(verdict_line(claim, result.table, numbers))
            if any(key[2] == kind for key in result.over_same_devices):
                second = NumbersOverSameDevices(result, kind)
                line = verdict_line(claim, result.table, second)
                if line.value and not second.asked_for_others:
                    result.claims_over_same_devices.append(line)
