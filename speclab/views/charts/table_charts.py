"""Draws the chart that a table's file names, as a plotly figure.

A table's TOML file contains, for example, ``chart = "lines_over_windows"``; ``CHARTS``
maps these names to functions. A table without the key has no chart; its page shows the
dot plot from ``views.tables.dot_plot``. Every chart is a few panels of bars or lines,
which plotly express draws from a frame with a row per number. This module reads the
tables' numbers, and neither runs nor files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from speclab.papers.figures import DraftLengths
from speclab.papers.paper_schema import Table
from speclab.papers.table_result import TableResult
from speclib.errors import unknown_name

from . import dsi_charts
from .look import COLOURS, DASHES, PALETTE, SHADES, with_look, wrap_label

ACROSS = 3  # maximum number of panels side by side
DOUBLING = 0.30103  # log10 of 2


# -- the numbers -----------------------------------------------------------------------
def numbers_of(result: TableResult) -> pd.DataFrame:
    """A row per number, in the order of the table's columns, rows and kinds."""
    table = result.table
    cells = [cell for values in result.values.values() for cell in values]
    rows = dict.fromkeys([*table.row_labels, *(row for row, _ in cells)])
    numbers = []
    for column in table.column_labels:
        for row in rows:
            for kind in result.kinds:
                value = result.values[kind].get((row, column))
                if value is not None:
                    unit = unit_of_column(table, column)
                    numbers.append((row, column, kind, value, unit))
    heads = ["row", "column", "kind", "value", "unit"]
    return pd.DataFrame(numbers, columns=heads)


def unit_of_column(table: Table, column: str) -> str:
    """The unit of a column's numbers, by default the table's."""
    return str(table.column.get(column, {}).get("unit", table.unit))


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name."""
    return {name: SHADES[i % len(SHADES)] for i, name in enumerate(names)}


# -- panels ----------------------------------------------------------------------------
def draw(
    form: Callable[..., go.Figure],
    result: TableResult,
    numbers: pd.DataFrame,
    panel: str,
    x: str,
    name: str,
    *,
    colours: Mapping[str, str] | None = None,
    across: int = ACROSS,
    y: str = "value",
    below: str = "",
    **options: Any,
) -> go.Figure:
    """Draws the numbers in panels with ``form``, a function from plotly express.

    ``panel``, ``x``, ``y`` and ``name`` are columns of ``numbers``, for the panel's
    title, the axes and the legend. ``below``: title of the lowest x axes.
    """
    if numbers.empty:
        return go.Figure()
    labels = [*result.kinds, *result.table.row_labels, *result.table.column_labels]
    labels = [form for label in labels for form in (label, wrap_label(label))]
    orders = {}
    for part in (panel, x, name):
        found = dict.fromkeys(numbers[part])
        known = [label for label in dict.fromkeys(labels) if label in found]
        orders[part] = list(dict.fromkeys([*known, *found]))
    panels = len(orders[panel])
    across = min(across, panels)
    lines = ceil(panels / across)
    figure = form(
        numbers,
        x=x,
        y=y,
        color=name,
        facet_col=panel,
        facet_col_wrap=across,
        category_orders=orders,
        color_discrete_map=dict(colours or colours_of(orders[name])),
        facet_row_spacing=min(0.35 / lines, 0.22),
        facet_col_spacing=0.07,
        **options,
    )
    figure.for_each_annotation(lambda a: a.update(text=a.text.partition("=")[2]))
    figure.update_xaxes(matches=None, showticklabels=True)
    if isinstance(orders[x][0], str):
        figure.update_xaxes(categoryorder="array", categoryarray=orders[x])
    figure.update_yaxes(showticklabels=True)
    figure.update_traces(hovertemplate="%{x}: %{y:.3g}")
    return with_look(figure, lines, result.table.shown_unit, below)


def bars_over_iterations(result: TableResult) -> go.Figure:
    """A bar per iteration, and a line at the fixed window size."""
    numbers = numbers_of(result)
    numbers = numbers.assign(iteration=numbers.row.astype(int))
    figure = draw(
        px.bar,
        result,
        numbers,
        "column",
        "iteration",
        "kind",
        colours=COLOURS,
        below=result.table.rows,
        barmode="group",
    )
    if isinstance(result.figure, DraftLengths):
        window = result.figure.gamma
        line = go.Scatter(
            x=[0.5, numbers.iteration.max() + 0.5],
            y=[window, window],
            name=f"fixed window γ = {window}",
            mode="lines",
            line={"dash": "dot", "color": "#d64545"},
        )
        figure.add_trace(line)
    return figure


# -- lines -----------------------------------------------------------------------------
def draw_lines(
    result: TableResult,
    numbers: pd.DataFrame,
    panel: str,
    x: str,
    name: str = "kind",
    *,
    dashes: Mapping[str, str] = DASHES,
    **options: Any,
) -> go.Figure:
    """Draws panels of lines with a dot per number; for options see ``draw``."""
    figure = draw(
        px.line,
        result,
        numbers,
        panel,
        x,
        name,
        line_dash=name,
        line_dash_map=dict(dashes),
        markers=True,
        **options,
    )
    return figure.update_yaxes(matches=None)


def lines_over_windows(result: TableResult) -> go.Figure:
    """A panel per column, and a line per kind over the windows γ.

    A star marks each line's highest point.
    """
    numbers = numbers_of(result)
    numbers = numbers.assign(window=numbers.row.astype(int))
    figure = draw_lines(
        result,
        numbers,
        "column",
        "window",
        colours=COLOURS,
        across=2 if numbers.column.nunique() == 4 else ACROSS,
        below="γ",
    )
    for line in figure.data:
        highest = max(line.y)
        line.marker.symbol = ["star" if y == highest else "circle" for y in line.y]
        line.marker.size = [15 if y == highest else 6 for y in line.y]
    return figure.update_xaxes(dtick=1)


def lines_over_rows(result: TableResult) -> go.Figure:
    """A panel per column, and a line per kind over row labels that are numbers.

    If a column's label is also a number, the panel's title states what it counts. If
    the printed numbers come from a formula, the legend shows it.
    """
    table = result.table
    names = {kind: kind for kind in result.kinds}
    if table.from_formula:
        names["paper"] = f"paper: {table.formula}"
    titles = {}
    for column in table.column_labels:
        is_number = column[0].isdigit()
        titles[column] = f"{table.columns_are}: {column}" if is_number else column
    numbers = numbers_of(result)
    numbers = numbers.assign(
        number=numbers.row.astype(float),
        title=numbers.column.map(titles),
        name=numbers.kind.map(names),
    )
    colours = {name: COLOURS[kind] for kind, name in names.items()}
    return draw_lines(
        result,
        numbers,
        "title",
        "number",
        "name",
        colours=colours,
        dashes=dict.fromkeys(colours, "solid"),
        below=table.rows,
    )


def lines_over_budgets(result: TableResult) -> go.Figure:
    """A panel per column, and a line per kind over the budgets.

    The y axis shows how much the speed differs from the speed at budget c, in per cent.
    """
    numbers = numbers_of(result)
    at_c = numbers[numbers.row == "c"].set_index(["column", "kind"]).value
    numbers = numbers.join(at_c.rename("at_c"), on=["column", "kind"], how="inner")
    numbers = numbers.assign(off=100 * (numbers.value / numbers.at_c - 1))
    figure = draw_lines(
        result,
        numbers,
        "column",
        "row",
        y="off",
        colours=COLOURS,
        across=2,
        below="budget",
    )
    figure.update_yaxes(rangemode="normal")
    return figure.update_yaxes(title_text="% off c", col=1)


def lines_over_lengths(result: TableResult) -> go.Figure:
    """A panel per unit, and a line per column and kind over the number of tokens.

    Each row's label begins with this number; its axis is logarithmic. The figure is
    empty if no label begins with a number.
    """
    numbers = numbers_of(result)
    numbers = numbers[numbers.row.str[0].str.isdigit()]
    numbers = numbers.assign(
        tokens=numbers.row.str.split().str[0].astype(int),
        panel="[" + numbers.unit + "]",
        name=numbers.column + " [" + numbers.kind + "]",
    )
    columns = colours_of(result.table.column_labels)
    colours = dict(zip(numbers.name, numbers.column.map(columns), strict=True))
    dashes = dict(zip(numbers.name, numbers.kind.map(DASHES), strict=True))
    figure = draw_lines(
        result,
        numbers,
        "panel",
        "tokens",
        "name",
        colours=colours,
        dashes=dashes,
        across=2,
        below="tokens",
    )
    figure.update_xaxes(type="log", dtick=DOUBLING)
    figure.update_yaxes(title_text="")
    legend = {"orientation": "v", "x": 1.02, "y": 1, "yref": "paper", "yanchor": "top"}
    return figure.update_layout(height=420, legend=legend)


def lines_over_layers(result: TableResult) -> go.Figure:
    """A panel per unit and kind, and a line per column over layers computed at once.

    A second calibration, or another model, has a dotted line in the same colour.
    """
    table = result.table
    metrics = {}
    for column in table.column_labels:
        settings = table.settings_of("", column)
        metrics[settings["unit"]] = settings["metric"].replace("_", " ")
    subjects = dict.fromkeys(map(_subject, table.column_labels))
    shades = dict(zip(subjects, PALETTE[::-1] * len(subjects), strict=False))
    numbers = numbers_of(result)
    numbers = numbers.assign(
        layers=numbers.row.astype(int),
        panel=numbers.unit.map(metrics) + " [" + numbers.kind + "]",
        name=numbers.column.str.split(" / ").str[0],
    )
    colours, dashes = {}, {}
    for name, column in zip(numbers.name, numbers.column, strict=True):
        colours[name] = shades[_subject(column)]
        is_second = ", not " in column or ": " in column
        dashes[name] = "dot" if is_second else "solid"
    figure = draw_lines(
        result,
        numbers,
        "panel",
        "layers",
        "name",
        colours=colours,
        dashes=dashes,
        across=2,
        below=table.rows,
    )
    figure.update_xaxes(dtick=1)
    return figure.update_yaxes(title_text="", rangemode="normal")


def _subject(column: str) -> str:
    """The part of a column's label without calibration and model."""
    return column.split(",")[0].split(": ")[-1]


# -- which one -------------------------------------------------------------------------
CHARTS: dict[str, Callable[[TableResult], go.Figure]] = {
    function.__name__: function
    for function in (
        bars_over_iterations,
        dsi_charts.dots_by_accounting,
        lines_over_budgets,
        lines_over_layers,
        lines_over_lengths,
        lines_over_rows,
        lines_over_windows,
        dsi_charts.speedup_heatmaps,
    )
}


def chart(result: TableResult) -> go.Figure | None:
    """The chart that the table's file names; None without a name or numbers.

    Raises UnknownName for a chart that is not in ``CHARTS``.
    """
    table = result.table
    if table.chart is None:
        return None
    if table.chart not in CHARTS:
        problem = f"{table.item} has the unknown chart {table.chart!r}"
        raise unknown_name(problem, table.chart, CHARTS)
    figure = CHARTS[table.chart](result)
    return figure if figure.data else None
