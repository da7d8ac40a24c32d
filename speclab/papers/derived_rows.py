"""Numbers of a table that are computed from its other numbers: means and quotients."""

from __future__ import annotations

from collections.abc import Sequence

from .estimates import Estimate, average, divide
from .paper_schema import ENGINE_KINDS
from .second_numbers import add_mean_of_second_numbers
from .table_result import TableResult


def add_means(result: TableResult) -> None:
    """Columns that are the mean of the others, for every kind but paper."""
    table = result.table
    columns = []
    for column in table.column_labels:
        if table.column.get(column, {}).get("mean_of"):
            columns.append(column)

    kinds = _kinds_that_were_run(result)
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
        key = (row, column, kind)
        if is_left_out:
            result.left_out.add(key)
        if is_disturbed:
            result.disturbed.add(key)
        if others and not is_left_out:
            _add_mean(result, row, column, kind, others)
            add_mean_of_second_numbers(result, row, column, kind, len(others))


def _add_mean(
    result: TableResult, row: str, column: str, kind: str, others: list[Estimate]
) -> None:
    setup = result.setup_of_row(row, kind)
    note = f"mean of the other {len(others)} columns"
    _add_derived(result, (row, column, kind), average(others), setup, note)


def _add_derived(
    result: TableResult,
    key: tuple[str, str, str],
    value: Estimate,
    setup: str,
    note: str,
) -> None:
    """Adds a number that was computed from others, with its resamples.

    ``key``: its row, column and kind.
    """
    result.samples[key] = value.resamples
    result.add(*key, value, setup=setup, note=note)


def add_quotients(result: TableResult) -> None:
    """Rows that are one row over another, for every kind but paper.

    What is disturbed or left out in one of the two is so in the quotient.
    """
    table = result.table
    for row in table.row_labels:
        rows = table.row.get(row, {}).get("quotient_of")
        if not isinstance(rows, tuple):
            continue
        top, bottom = map(str, rows)
        for kind in _kinds_that_were_run(result):
            for column in table.column_labels:
                _add_quotient(result, row, column, kind, top, bottom)


def _add_quotient(
    result: TableResult, row: str, column: str, kind: str, top: str, bottom: str
) -> None:
    key = (row, column, kind)
    for keys in (result.left_out, result.disturbed):
        if (top, column, kind) in keys or (bottom, column, kind) in keys:
            keys.add(key)
    of = result.estimate(top, column, kind)
    by = result.estimate(bottom, column, kind)
    if of is None or by is None or key in result.left_out:
        return

    quotient = divide(of, by)
    if result.table.settings_of(row, column)["unit"] == "%":
        quotient = quotient.times(100)
    setup = result.setup_of_row(top, kind)
    _add_derived(result, key, quotient, setup, f"{top} over {bottom}")


def _kinds_that_were_run(result: TableResult) -> list[str]:
    """The kinds but paper that have numbers, or cells that have been left out."""
    left_out_kinds = {kind for _, _, kind in result.left_out}
    return [kind for kind in ENGINE_KINDS if kind in {*result.kinds, *left_out_kinds}]
