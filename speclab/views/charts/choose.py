"""The chart of a table, as a plotly figure: the table's file says which, by name.

A table's TOML file says ``chart = "bars_by_kind"``; ``CHARTS`` has the functions by
these names. A table without the key has no chart. Reads numbers of tables; knows no run
and no file.
"""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from speclab.papers.table_result import TableResult
from speclib.errors import unknown_name

from . import bars, dsi_charts, easyspec_charts, line_chart

CHARTS: dict[str, Callable[[TableResult], go.Figure | None]] = {
    "bars_by_column": bars.bars_by_column,
    "bars_by_kind": bars.bars_by_kind,
    "bars_by_method": bars.bars_by_method,
    "bars_by_part": bars.bars_by_part,
    "bars_by_row": bars.bars_by_row,
    "bars_by_target": bars.bars_by_target,
    "bars_over_iterations": bars.bars_over_iterations,
    "dots_by_accounting": dsi_charts.dots_by_accounting,
    "lines_over_budgets": line_chart.lines_over_budgets,
    "lines_over_layers": easyspec_charts.lines_over_layers,
    "lines_over_lengths": line_chart.lines_over_lengths,
    "lines_over_rows": line_chart.lines_over_rows,
    "lines_over_windows": line_chart.lines_over_windows,
    "points_against_print": easyspec_charts.points_against_print,
    "speedup_heatmaps": dsi_charts.speedup_heatmaps,
}


def chart(result: TableResult) -> go.Figure | None:
    """The chart that the table's file names; None where the table says it all.

    A chart is also None where the numbers that it would show are missing. Raises
    UnknownName for a chart that is not in ``CHARTS``.
    """
    table = result.table
    if table.chart is None:
        return None
    if table.chart not in CHARTS:
        problem = f"{table.item} has the unknown chart {table.chart!r}"
        raise unknown_name(problem, table.chart, CHARTS)
    if not result.kinds:
        return None
    return CHARTS[table.chart](result)
