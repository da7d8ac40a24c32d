"""Charts of lines over a setting: windows, numbers in rows, budgets, text lengths.

Reads numbers of tables; knows no run and no file.
"""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from speclab.papers.table_result import TableResult

from .style import ACROSS, COLOURS, DASHES, SHADES, Panels
from .values import column_values, filled_columns, unit_of_column

DOUBLING = 0.30103  # log10 of 2


def add_line(
    panels: Panels,
    panel: int,
    points: Mapping[int, float] | Mapping[str, float],
    name: str,
    colour: str,
    dash: str,
) -> None:
    """Adds a line through ``points``, y by x, to a panel."""
    line = go.Scatter(
        x=list(points),
        y=list(points.values()),
        name=name,
        legendgroup=name,
        mode="lines+markers",
        line={"color": colour, "dash": dash},
        hovertemplate=f"{name}, %{{x}}: %{{y:.3g}}<extra></extra>",
    )
    panels.add(panel, line)


def lines_over_windows(result: TableResult) -> go.Figure:
    """A panel per column, a line per kind over the windows γ, a star on each line's
    highest point."""
    columns = result.table.column_labels
    across = 2 if len(columns) == 4 else ACROSS
    panels = Panels(columns, across)
    for panel, column in enumerate(columns):
        for kind in result.kinds:
            speeds = column_values(result, kind, column)
            if speeds:
                _add_window_line(panels, panel, kind, speeds)
    panels.figure.update_xaxes(dtick=1)
    return panels.finish(result, below="γ")


def _add_window_line(
    panels: Panels, panel: int, kind: str, speeds: Mapping[str, float]
) -> None:
    """Adds a line over windows, written as text, with a star on its highest point."""
    windows = [int(row) for row in speeds]
    heights = list(speeds.values())
    highest = heights.index(max(heights))
    symbols = ["circle"] * len(windows)
    sizes = [6] * len(windows)
    symbols[highest] = "star"
    sizes[highest] = 15

    line = go.Scatter(
        x=windows,
        y=heights,
        mode="lines+markers",
        name=kind,
        legendgroup=kind,
        showlegend=panel == 0,
        line={"color": COLOURS[kind], "dash": "dot" if kind == "paper" else "solid"},
        marker={"size": sizes, "symbol": symbols},
        hovertemplate=f"γ = %{{x}}: %{{y:.2f}} [{kind}]<extra></extra>",
    )
    panels.add(panel, line)


def lines_over_rows(result: TableResult) -> go.Figure:
    """A panel per column, a line per kind over row labels that are numbers.

    A column whose label is a number, too, says of what.
    """
    table = result.table
    titles = []
    for column in table.column_labels:
        is_number = column[0].isdigit()
        titles.append(f"{table.columns_are}: {column}" if is_number else column)

    panels = Panels(titles)
    for panel, column in enumerate(table.column_labels):
        for kind in result.kinds:
            xs, ys = [], []
            for (row, column_of_value), value in result.values[kind].items():
                if column_of_value == column:
                    xs.append(float(row))
                    ys.append(value)
            line = go.Scatter(
                x=xs,
                y=ys,
                name=_kind_or_formula(result, kind),
                showlegend=panel == 0,
                mode="lines+markers",
                line_color=COLOURS[kind],
            )
            panels.add(panel, line)
    return panels.finish(result, below=table.rows)


def _kind_or_formula(result: TableResult, kind: str) -> str:
    """The name of a kind, with the formula where the printed numbers come from one."""
    table = result.table
    if kind == "paper" and table.from_formula:
        return f"{kind}: {table.formula}"
    return kind


def lines_over_budgets(result: TableResult) -> go.Figure:
    """A panel per column, a line per kind: by how many per cent the speed at a budget
    is off that at the budget c."""
    columns = result.table.column_labels
    panels = Panels(columns, across=2)
    for panel, column in enumerate(columns):
        for kind in result.kinds:
            speeds = column_values(result, kind, column)
            if "c" not in speeds:
                continue
            differences = {
                budget: 100 * (speed / speeds["c"] - 1)
                for budget, speed in speeds.items()
            }
            colour, dash = COLOURS[kind], DASHES[kind]
            add_line(panels, panel, differences, kind, colour, dash)
    panels.name_once()
    figure = panels.finish(result, below="budget")
    figure.update_yaxes(rangemode="normal", title_text="")
    return figure.update_yaxes(title_text="% off c", col=1)


def lines_over_lengths(result: TableResult) -> go.Figure | None:
    """A panel per unit, a line per column and kind over the number of tokens with which
    a row's label begins; that axis is logarithmic. None where no row begins so."""
    table = result.table
    units = list(dict.fromkeys(unit_of_column(table, c) for c in table.column_labels))
    panels = Panels([f"[{unit}]" for unit in units], across=2)
    for panel, unit in enumerate(units):
        for index, column in enumerate(table.column_labels):
            for kind in result.kinds:
                if column not in filled_columns(result, kind, unit):
                    continue
                points = _points_over_lengths(result, kind, column)
                if points:
                    name = f"{column} [{kind}]"
                    shade = SHADES[index % len(SHADES)]
                    add_line(panels, panel, points, name, shade, DASHES[kind])
    if not panels.figure.data:
        return None

    panels.name_once()
    panels.figure.update_xaxes(type="log", dtick=DOUBLING)
    figure = panels.finish(result, below="tokens")
    figure.update_yaxes(title_text="")
    legend = {
        "orientation": "v",
        "x": 1.02,
        "y": 1,
        "yref": "paper",
        "yanchor": "top",
    }
    return figure.update_layout(height=420, legend=legend)


def _points_over_lengths(
    result: TableResult, kind: str, column: str
) -> dict[int, float]:
    """A column's numbers of a kind, by the number of tokens of their rows."""
    points = {}
    for (row, column_of_value), value in result.values[kind].items():
        if column_of_value == column and row[0].isdigit():
            points[int(row.split()[0])] = value
    return points
