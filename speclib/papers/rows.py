"""Ledger rows and verdicts of one table, from its print and its cells' results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from speclib.experiment import other_load
from speclib.experiment.run_cells import example_trace
from speclib.experiment.spec import CellResult, Spec

from . import statistics
from .claims import judge_in_result
from .estimates import Estimate, average, ledger_interval
from .notes import note_of, setup_of
from .pearl_figures import BEST_LENGTH, add_lengths, best_lengths
from .schema import KINDS, Table, matches_any
from .scripts import add_scripted_numbers
from .table_cells import TableCell
from .table_result import TableResult

# An emulated cell in which more operations than this share outlast their latency is not
# reported.
MOST_OVERRUNS = 0.01


def add_rows_and_verdicts(
    result: TableResult,
    cells: Sequence[TableCell],
    cell_results: dict[Spec, CellResult],
    errors: dict[Spec, Exception],
    kinds: Iterable[str],
    *,
    run: bool = True,
) -> None:
    """Completes ``result``.

    It gets the printed rows, a row per cell that was run or failed, the numbers that
    need no cell, means over columns, and the verdicts on its claims. With ``run=False``
    nothing is computed that the cache could have and lacks.
    """
    _add_printed_rows(result)
    for cell in cells:
        if cell.spec in cell_results:
            _add_cell(result, cell, cell_results[cell.spec])
        elif cell.spec in errors:
            _add_failed_cell(result, cell, errors[cell.spec])
        else:
            result.left_out.add((cell.row, cell.column, cell.kind))
    add_scripted_numbers(result, kinds, run=run)
    _add_means(result)
    _add_verdicts(result)


# -- the print -------------------------------------------------------------------------
def _add_printed_rows(result: TableResult) -> None:
    table = result.table
    source = table.printed_on or f"arXiv:{table.paper.arxiv}"
    for row, column, value in table.cells:
        settings = table.settings_of(row, column)
        notes = _errata_notes(table, row, column, beside=False)
        if table.from_formula:
            notes.insert(0, f"from the formula {table.formula}")
        result.add(
            row=row,
            column=column,
            metric=settings["metric"],
            unit=settings["unit"],
            kind="paper",
            setup="",
            value=float(value),
            source=source,
            note="; ".join(notes),
        )
    _add_numbers_in_brackets(result, source)
    _add_missing_rows(result, source, table.lost, "lost")
    _add_missing_rows(result, source, table.absent, "not printed")


def _add_numbers_in_brackets(result: TableResult, source: str) -> None:
    beside = result.table.beside
    if beside is None:
        return
    for row, column, value in beside.cells:
        notes = _errata_notes(result.table, row, column, beside=True)
        result.add(
            row=row,
            column=column,
            metric=beside.metric,
            unit=beside.unit,
            kind="paper",
            setup="",
            value=float(value),
            source=source,
            note="; ".join(notes),
            show=False,
        )


def _add_missing_rows(
    result: TableResult, source: str, places: Sequence[tuple[str, str]], note: str
) -> None:
    """Adds a row without a value per cell that the print lacks; labels may be "*"."""
    table = result.table
    for row, column in places:
        settings = table.column.get(column, {}) | table.row.get(row, {})
        result.add(
            row=row,
            column=column,
            metric=str(settings.get("metric", table.metric)),
            unit=str(settings.get("unit", table.unit)),
            kind="paper",
            setup="",
            value=None,
            source=source,
            note=note,
        )


def _errata_notes(table: Table, row: str, column: str, beside: bool) -> list[str]:
    """The errata of a cell, or of the number ``beside`` it in brackets."""
    notes = []
    for erratum in table.errata:
        if erratum.beside == beside and matches_any(erratum.cells, row, column):
            on_one_line = " ".join(erratum.note.split())
            notes.append(f"{erratum.kind}: {on_one_line}")
    return notes


# -- cells that were run ---------------------------------------------------------------
def _add_cell(result: TableResult, cell: TableCell, cell_result: CellResult) -> None:
    if cell.stat == BEST_LENGTH:
        _add_curve(result, cell, cell_result)
    elif cell.kind == "emulated" and cell_result.facts["overruns"] > MOST_OVERRUNS:
        _add_unreported_cell(result, cell, cell_result)
    else:
        _add_number(result, cell, cell_result)


def _add_curve(result: TableResult, cell: TableCell, cell_result: CellResult) -> None:
    """A figure's curve, of the cell's first request."""
    commits = example_trace(cell_result).commits
    lengths = best_lengths(cell_result.facts["agree"], commits, cell_result.gamma)
    add_lengths(
        result,
        cell.column,
        lengths,
        kind=cell.kind,
        setup=setup_of(cell.spec, cell_result),
        source=f"{cell.kind} {cell_result.created}",
        note=note_of(cell, cell_result),
    )


def _add_unreported_cell(
    result: TableResult, cell: TableCell, cell_result: CellResult
) -> None:
    note = note_of(cell, cell_result)
    result.add(
        row=cell.row,
        column=cell.column,
        metric=cell.metric,
        unit=cell.unit,
        kind=cell.kind,
        setup=setup_of(cell.spec, cell_result),
        value=None,
        note="not reported: the machine is too slow or busy to emulate these latencies "
        f"(at most {MOST_OVERRUNS:.0%} overruns); {note}",
    )


def _add_number(result: TableResult, cell: TableCell, cell_result: CellResult) -> None:
    """The cell's statistic with its interval; a virtual one is compared with print."""
    value = statistics.compute(cell.stat, cell_result, cell.scaled_tokens)
    samples = statistics.resample(cell.stat, cell_result, cell.scaled_tokens)
    place = cell.row, cell.column, cell.kind
    result.cell_results[place] = cell_result
    result.samples[place] = samples
    shares = cell_result.facts.get("others", ())
    if any(other_load.is_disturbed(share) for share in shares):
        result.disturbed.add(place)

    note = note_of(cell, cell_result)
    source = f"{cell.kind} {cell_result.created}"
    if cell.kind == "virtual":
        source = f"data/latency/{cell.spec.latency}.toml"
        printed = result.table.printed(cell.row, cell.column)
        if printed:
            note += f"; {100 * (value / printed - 1):+.1f} % against print"

    result.add(
        row=cell.row,
        column=cell.column,
        metric=cell.metric,
        unit=cell.unit,
        kind=cell.kind,
        setup=setup_of(cell.spec, cell_result),
        value=value,
        interval=ledger_interval(Estimate(value, samples)),
        n=len(cell_result.stats),
        source=source,
        note=note,
    )
    if cell.kind == "measured" and cell.stat == "speedup":
        _add_speedup_with_prefill(result, cell, cell_result, source)


def _add_speedup_with_prefill(
    result: TableResult, cell: TableCell, cell_result: CellResult, source: str
) -> None:
    value = statistics.compute("speedup_e2e", cell_result)
    samples = statistics.resample("speedup_e2e", cell_result)
    result.add(
        row=cell.row,
        column=cell.column,
        metric="speedup_e2e",
        unit=cell.unit,
        kind=cell.kind,
        setup=setup_of(cell.spec, cell_result),
        value=value,
        interval=ledger_interval(Estimate(value, samples)),
        n=len(cell_result.stats),
        source=source,
        note="prefill included",
        show=False,
    )


def _add_failed_cell(result: TableResult, cell: TableCell, error: Exception) -> None:
    name = f"{result.table.item}, {cell.row}, {cell.column}: {cell.spec.name}"
    result.errors[name] = str(error)
    result.add(
        row=cell.row,
        column=cell.column,
        metric=cell.metric,
        unit=cell.unit,
        kind=cell.kind,
        setup=setup_of(cell.spec, None),
        value=None,
        note=f"failed: {error}",
    )


# -- means -----------------------------------------------------------------------------
def _add_means(result: TableResult) -> None:
    """Columns that are the mean of the others, for every kind but paper."""
    table = result.table
    columns = []
    for column in table.column_labels:
        if table.column.get(column, {}).get("mean_of"):
            columns.append(column)

    kinds = [kind for kind in _kinds_to_judge(result) if kind != "paper"]
    for kind in kinds:
        for row in table.row_labels:
            _add_means_of_row(result, row, kind, columns)


def _add_means_of_row(
    result: TableResult, row: str, kind: str, mean_columns: Sequence[str]
) -> None:
    """Adds the means of a row; those of disturbed or left-out cells are so, too.

    A mean without the cells that are left out would be that of other columns, so then
    there is none.
    """
    table = result.table
    others = []
    is_left_out, is_disturbed = False, False
    for column in table.column_labels:
        is_left_out |= (row, column, kind) in result.left_out
        is_disturbed |= (row, column, kind) in result.disturbed
        estimate = result.estimate(row, column, kind)
        if estimate is not None:
            others.append(estimate)

    for column in mean_columns:
        place = (row, column, kind)
        if is_left_out:
            result.left_out.add(place)
        if is_disturbed:
            result.disturbed.add(place)
        if others and not is_left_out:
            _add_mean(result, row, column, kind, others)


def _add_mean(
    result: TableResult, row: str, column: str, kind: str, others: list[Estimate]
) -> None:
    mean = average(others)
    result.samples[row, column, kind] = mean.resamples
    settings = result.table.settings_of(row, column)
    result.add(
        row=row,
        column=column,
        metric=settings["metric"],
        unit=settings["unit"],
        kind=kind,
        setup=_setup_of_row(result, row, kind),
        value=mean.value,
        interval=ledger_interval(mean),
        n=mean.resamples.requests if mean.resamples else None,
        note=f"mean of the other {len(others)} columns",
    )


def _setup_of_row(result: TableResult, row: str, kind: str) -> str:
    """The setup that the numbers of a row share."""
    for ledger_row in result.rows:
        if (ledger_row.row, ledger_row.kind) == (row, kind):
            return ledger_row.setup
    return ""


# -- verdicts --------------------------------------------------------------------------
def _add_verdicts(result: TableResult) -> None:
    for kind in _kinds_to_judge(result):
        for claim in result.table.claims:
            if kind in claim.kinds:
                result.claims.append(judge_in_result(claim, result, kind))


def _kinds_to_judge(result: TableResult) -> list[str]:
    """The kinds that have numbers, or cells that have only been left out."""
    left_out_kinds = {kind for _, _, kind in result.left_out}
    return [kind for kind in KINDS if kind in result.kinds or kind in left_out_kinds]
