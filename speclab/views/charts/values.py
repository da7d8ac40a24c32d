"""Numbers of a table's result as charts need them: by column, by unit, by kind."""

from __future__ import annotations

from speclab.papers.paper_schema import Table
from speclab.papers.table_result import TableResult


def unit_of_column(table: Table, column: str) -> str:
    """The unit of a column's numbers: its own, or that of the table."""
    return str(table.column.get(column, {}).get("unit", table.unit))


def column_values(result: TableResult, kind: str, column: str) -> dict[str, float]:
    """The numbers of one kind in a column, by row, in the order of the table's rows."""
    values = result.values.get(kind, {})
    return {
        row: values[row, column]
        for row in result.table.row_labels
        if (row, column) in values
    }


def filled_columns(result: TableResult, kind: str, unit: str) -> list[str]:
    """The columns of a unit that have numbers of a kind."""
    columns_with_values = {column for _, column in result.values.get(kind, {})}
    columns = []
    for column in result.table.column_labels:
        in_unit = unit_of_column(result.table, column) == unit
        if in_unit and column in columns_with_values:
            columns.append(column)
    return columns
