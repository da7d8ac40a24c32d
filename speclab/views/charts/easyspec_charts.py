"""EasySpec's charts: numbers against print, and lines over how many layers are computed
at once.

Reads numbers of tables; knows no run and no file.
"""

from __future__ import annotations

import plotly.graph_objects as go

from speclab.papers.table_result import TableResult

from .bars import add_bar, is_empty
from .line_chart import add_line
from .style import COLOURS, PALETTE, SHADES, Panels
from .values import column_values, filled_columns

PARTS = ("d", "v", "total")  # of a column "method / part": drafting, verifying, all
MARKS = {"virtual": "circle", "emulated": "x"}  # the kinds that are set against print


# -- against print ---------------------------------------------------------------------
def points_against_print(result: TableResult) -> go.Figure:
    """A panel per part of the time: our numbers over the printed ones, a point per row.

    On the diagonal both agree. What was measured took other models' seconds, so it has
    panels of its own, one per group of rows, with a group of bars per dataset.
    """
    groups = _measured_groups(result)
    titles = [f"{part}: ours against print" for part in PARTS]
    titles += [f"{group} [measured]" for group in groups]

    panels = Panels(titles)
    for panel, part in enumerate(PARTS):
        _add_points(panels, panel, result, part)
    for panel, group in enumerate(groups, start=len(PARTS)):
        _add_measured_totals(panels, panel, result, group)
    panels.name_once()
    return panels.finish(result)


def _measured_groups(result: TableResult) -> list[str]:
    """What stands before the dataset in the labels of measured rows."""
    measured = result.values.get("measured", {})
    return list(dict.fromkeys(row.rpartition(" / ")[0] for row, _ in measured))


def _methods(result: TableResult) -> list[str]:
    columns = result.table.column_labels
    return list(dict.fromkeys(column.split(" / ")[0] for column in columns))


def _add_points(panels: Panels, panel: int, result: TableResult, part: str) -> None:
    """Adds the points of a part, and the diagonal up to the largest number."""
    printed_values = result.values["paper"]
    largest = 0.0
    for index, method in enumerate(_methods(result)):
        column = f"{method} / {part}"
        for kind in MARKS:
            if kind not in result.kinds:
                continue
            rows, printed, ours = [], [], []
            for (row, column_of_value), value in result.values[kind].items():
                if column_of_value == column and (row, column) in printed_values:
                    rows.append(row)
                    printed.append(printed_values[row, column])
                    ours.append(value)
            if not rows:
                continue
            largest = max(largest, *printed, *ours)
            points = go.Scatter(
                x=printed,
                y=ours,
                mode="markers",
                name=f"{method} [{kind}]",
                legendgroup=method + kind,
                text=rows,
                marker={"color": SHADES[index], "symbol": MARKS[kind], "size": 8},
                hovertemplate="%{text}: %{x:.2f} printed, %{y:.2f}<extra></extra>",
            )
            panels.add(panel, points)

    diagonal = go.Scatter(
        x=[0, largest],
        y=[0, largest],
        mode="lines",
        name="as printed",
        legendgroup="as printed",
        line={"color": COLOURS["paper"], "dash": "dot"},
    )
    panels.add(panel, diagonal)


def _add_measured_totals(
    panels: Panels, panel: int, result: TableResult, group: str
) -> None:
    """Adds the measured times in all of a group of rows, a bar per method."""
    measured = result.values["measured"]
    measured_rows = {row for row, _ in measured}
    rows = []
    for row in result.table.row_labels:
        if row.startswith(f"{group} / ") and row in measured_rows:
            rows.append(row)

    datasets = [row.rpartition(" / ")[2] for row in rows]
    for shade, method in enumerate(_methods(result)):
        heights = [measured.get((row, f"{method} / total")) for row in rows]
        if not is_empty(heights):
            add_bar(panels, panel, datasets, heights, method, shade)


# -- over the number of layers ---------------------------------------------------------
def lines_over_layers(result: TableResult) -> go.Figure | None:
    """A panel per unit and kind, a line per column over the number of layers at once.

    Where columns come in two, the one that is "not" so, or another model's, is the
    dotted line of the same colour.
    """
    table = result.table
    subjects = list(dict.fromkeys(_subject(column) for column in table.column_labels))
    metric_of_unit = {}
    for column in table.column_labels:
        settings = table.settings_of("", column)
        metric_of_unit[settings["unit"]] = settings["metric"]

    titles, shown = [], []
    for unit, metric in metric_of_unit.items():
        for kind in result.kinds:
            columns = filled_columns(result, kind, unit)
            if columns:
                titles.append(f"{metric.replace('_', ' ')} [{kind}]")
                shown.append((kind, columns))
    if not shown:
        return None

    panels = Panels(titles, across=2)
    for panel, (kind, columns) in enumerate(shown):
        for column in columns:
            points = {}
            for row, value in column_values(result, kind, column).items():
                points[int(row)] = value
            colour = PALETTE[::-1][subjects.index(_subject(column)) % len(PALETTE)]
            is_second = ", not " in column or ": " in column
            dash = "dot" if is_second else "solid"
            add_line(panels, panel, points, column.split(" / ")[0], colour, dash)
    panels.name_once()
    figure = panels.finish(result, below=table.rows)
    figure.update_xaxes(dtick=1)
    return figure.update_yaxes(title_text="", rangemode="normal")


def _subject(column: str) -> str:
    """What two columns share that differ in calibration or model."""
    return column.split(",")[0].split(": ")[-1]
