"""Ledger lines and verdicts of one table, from its print and its cells' results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from speclab.experiment.run_cells import example_trace
from speclab.experiment.spec import CellResult, Spec, present

from . import same_devices
from .claims import judge_in_result, judge_over_same_devices
from .derived_rows import add_means, add_quotients
from .notes import describe_correction, note_of, setup_of
from .paper_schema import KINDS, Table, matches_any
from .pearl_figures import BEST_LENGTH, add_lengths, best_lengths
from .scripts import add_scripted_numbers
from .second_numbers import add_failed_plain, add_second_number
from .table_cells import TableCell
from .table_result import TableResult, is_disturbed
from .two_phase import Peers

# An emulated cell in which more operations than this share outlast their latency is not
# reported.
MOST_OVERRUNS = 0.01


def add_lines_and_verdicts(
    result: TableResult,
    cells: Sequence[TableCell],
    cell_results: dict[Spec, CellResult],
    errors: dict[Spec, Exception],
    kinds: Iterable[str],
    peers: Peers,
    *,
    run: bool = True,
) -> None:
    """Completes ``result``.

    It gets the printed lines, a line per cell that was run or failed, the numbers that
    need no cell, means over columns, and the verdicts on its claims. With ``run=False``
    nothing is computed that the cache could have and lacks.
    """
    _add_printed_lines(result)
    for cell in cells:
        if cell.spec in cell_results:
            _add_cell(result, cell, cell_results[cell.spec], peers)
            add_second_number(result, cell, cell_results, peers)
            add_failed_plain(result, cell, errors)
        elif cell.spec in errors:
            _add_failed_cell(result, cell, errors[cell.spec])
        else:
            result.left_out.add(cell.key)
    add_scripted_numbers(result, kinds, run=run)
    add_means(result)
    add_quotients(result)
    _add_verdicts(result)


# -- the print -------------------------------------------------------------------------
def _add_printed_lines(result: TableResult) -> None:
    table = result.table
    source = table.printed_on or table.paper.address
    for row, column, value in table.cells:
        notes = _errata_notes(table, row, column, beside=False)
        if table.from_formula:
            notes.insert(0, f"from the formula {table.formula}")
        result.add(
            row, column, "paper", float(value), source=source, note="; ".join(notes)
        )
    _add_numbers_in_brackets(result, source)
    _add_missing_lines(result, source, table.lost, "lost")
    _add_missing_lines(result, source, table.absent, "not printed")


def _add_numbers_in_brackets(result: TableResult, source: str) -> None:
    beside = result.table.beside
    if beside is None:
        return
    for row, column, value in beside.cells:
        notes = _errata_notes(result.table, row, column, beside=True)
        result.add(
            row,
            column,
            "paper",
            float(value),
            metric=beside.metric,
            unit=beside.unit,
            source=source,
            note="; ".join(notes),
            show=False,
        )


def _add_missing_lines(
    result: TableResult, source: str, cells: Sequence[tuple[str, str]], note: str
) -> None:
    """Adds a line without a value per cell that the print lacks; labels may be "*"."""
    table = result.table
    for row, column in cells:
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
    """The errata of a cell, or of the number ``beside`` it in brackets."""
    notes = []
    for erratum in table.errata:
        if erratum.beside == beside and matches_any(erratum.cells, row, column):
            on_one_line = " ".join(erratum.note.split())
            notes.append(f"{erratum.kind}: {on_one_line}")
    return notes


# -- cells that were run ---------------------------------------------------------------
def _add_cell(
    result: TableResult, cell: TableCell, cell_result: CellResult, peers: Peers
) -> None:
    if cell.stat == BEST_LENGTH:
        _add_curve(result, cell, cell_result)
    elif cell.kind == "emulated" and cell_result.facts["overruns"] > MOST_OVERRUNS:
        _add_unreported_cell(result, cell, cell_result)
    else:
        _add_number(result, cell, cell_result, peers)


def _add_curve(result: TableResult, cell: TableCell, cell_result: CellResult) -> None:
    """A figure's curve, of the cell's first request."""
    commits = example_trace(cell_result).commits
    agreements = present(cell_result.facts["agree"])
    lengths = best_lengths(agreements, commits, cell_result.gamma)
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
        *cell.key,
        None,
        setup=setup_of(cell.spec, cell_result),
        note="not reported: the machine is too slow or busy to emulate these latencies "
        f"(at most {MOST_OVERRUNS:.0%} overruns); {note}",
    )


def _add_number(
    result: TableResult, cell: TableCell, cell_result: CellResult, peers: Peers
) -> None:
    """The cell's statistic with its interval; a virtual one is compared with print."""
    estimate = same_devices.read_statistic(
        cell.stat, cell_result, cell.scaled_tokens, peers
    )
    result.cell_results[cell.key] = cell_result
    result.samples[cell.key] = estimate.resamples
    if is_disturbed(cell_result):
        result.disturbed.add(cell.key)

    note = note_of(cell, cell_result)
    source = f"{cell.kind} {cell_result.created}"
    if cell.kind == "virtual":
        source = f"data/latency/{cell.spec.latency}.toml"
        printed = result.table.printed(cell.row, cell.column)
        if printed:
            note += f"; {100 * (estimate.value / printed - 1):+.1f} % against print"
    note += describe_correction(estimate, cell_result)

    result.add(
        *cell.key,
        estimate,
        setup=setup_of(cell.spec, cell_result),
        n=len(cell_result.stats),
        source=source,
        note=note,
    )
    if cell.kind == "measured" and cell.stat == "speedup":
        _add_speedup_with_prefill(result, cell, cell_result, source, peers)


def _add_speedup_with_prefill(
    result: TableResult,
    cell: TableCell,
    cell_result: CellResult,
    source: str,
    peers: Peers,
) -> None:
    result.add(
        *cell.key,
        same_devices.read_statistic("speedup_e2e", cell_result, peers=peers),
        metric="speedup_e2e",
        setup=setup_of(cell.spec, cell_result),
        n=len(cell_result.stats),
        source=source,
        note="prefill included",
        show=False,
    )


def _add_failed_cell(result: TableResult, cell: TableCell, error: Exception) -> None:
    name = f"{result.table.item}, {cell.row}, {cell.column}: {cell.spec.name}"
    result.errors[name] = str(error)
    result.add(
        *cell.key, None, setup=setup_of(cell.spec, None), note=f"failed: {error}"
    )


# -- verdicts --------------------------------------------------------------------------
def _add_verdicts(result: TableResult) -> None:
    for kind in _kinds_to_judge(result):
        for claim in result.table.claims:
            if kind in claim.kinds:
                result.claims.append(judge_in_result(claim, result, kind))
                second = judge_over_same_devices(claim, result, kind)
                if second is not None:
                    result.claims_over_same_devices.append(second)


def _kinds_to_judge(result: TableResult) -> list[str]:
    """The kinds that have numbers, or cells that have only been left out."""
    left_out_kinds = {kind for _, _, kind in result.left_out}
    return [kind for kind in KINDS if kind in result.kinds or kind in left_out_kinds]
