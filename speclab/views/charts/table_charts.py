"""The chart of a table, as a plotly figure: the table's file says which, by name.

A table's TOML file says ``chart = "bars_by_kind"``; ``CHARTS`` has the functions by
these names. A table without the key has no chart. Every chart is a few panels of bars,
lines or points, drawn by plotly express from a frame with a line per number. Reads
numbers of tables; knows no run and no file.
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
from speclab.views.tables.grid import shown_unit
from speclib.errors import unknown_name

from . import dsi_charts
from .look import COLOURS, DASHES, INK, PALETTE, SHADES, with_look, wrap_label

ACROSS = 3  # panels beside each other, at most
MANY_LABELS = 8  # more labels than this are turned, and need the whole width
MANY_COLUMNS = 4  # more groups of bars than this need the whole width
MOST_OF_INTERVALS = 2  # intervals are shown up to this multiple of the tallest bar
PARTS = ("draft", "target", "verification", "communication", "time per iteration")
PARTS_OF_TIME = ("d", "v", "total")  # of a column "method / part": drafting, verifying
MARKS = {"virtual": "circle", "emulated": "x"}  # the kinds that are set against print
DOUBLING = 0.30103  # log10 of 2


# -- the numbers -----------------------------------------------------------------------
def numbers_of(result: TableResult) -> pd.DataFrame:
    """A line per number, in the order of the table's columns, rows and kinds.

    ``low`` and ``high`` are how far the 95 % interval reaches below and above it, 0
    where there is none.
    """
    table = result.table
    intervals = {}
    for line in result.lines:
        is_main = line.metric == table.metric
        if is_main and line.low is not None and line.high is not None:
            intervals[line.kind, line.row, line.column] = line.low, line.high
    cells = [cell for values in result.values.values() for cell in values]
    rows = dict.fromkeys([*table.row_labels, *(row for row, _ in cells)])
    numbers = []
    for column in table.column_labels:
        for row in rows:
            for kind in result.kinds:
                value = result.values[kind].get((row, column))
                if value is None:
                    continue
                low, high = intervals.get((kind, row, column), (value, value))
                number = {
                    "row": row,
                    "column": column,
                    "kind": kind,
                    "value": value,
                    "low": value - low,
                    "high": high - value,
                    "unit": unit_of_column(table, column),
                }
                numbers.append(number)
    heads = ("row", "column", "kind", "value", "low", "high", "unit")
    return pd.DataFrame(numbers, columns=list(heads))


def unit_of_column(table: Table, column: str) -> str:
    """The unit of a column's numbers: its own, or that of the table."""
    return str(table.column.get(column, {}).get("unit", table.unit))


def in_table_unit(result: TableResult) -> pd.DataFrame:
    """The numbers without columns of another unit, which have another scale."""
    numbers = numbers_of(result)
    return numbers[numbers.unit == result.table.unit]


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
    """The numbers in panels, drawn by ``form``, a function of plotly express.

    ``panel``, ``x``, ``y`` and ``name`` are columns of ``numbers``: the panel's title,
    the axes, and what the legend says. ``below`` is written under the lowest panels.
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
    return with_look(figure, lines, shown_unit(result.table), below)


def draw_bars(
    result: TableResult,
    numbers: pd.DataFrame,
    panel: str,
    x: str,
    name: str,
    *,
    across: int = 1,
    shared_y: bool = False,
    turned: bool = False,
    **options: Any,
) -> go.Figure:
    """Panels of bars in groups; further options are those of ``draw``.

    ``turned``: where there are many labels, they are turned and stay on one line.
    """
    many = numbers[x].nunique() > MANY_LABELS
    turned = turned and many
    figure = draw(
        px.bar,
        result,
        numbers if turned else numbers.assign(**{x: numbers[x].map(wrap_label)}),
        panel,
        x,
        name,
        across=1 if many else across,
        barmode="group",
        **options,
    )
    if not shared_y:
        figure.update_yaxes(matches=None)
    if turned:
        figure.update_xaxes(tickangle=-35)
        figure.update_layout(margin_b=120, height=figure.layout.height + 64)
    return figure


# -- bars ------------------------------------------------------------------------------
def bars_by_kind(result: TableResult) -> go.Figure:
    """A bar per kind, print beside ours; a panel per column, or per row if those are
    fewer.

    Empty where there is one kind only: its bars would compare nothing.
    """
    numbers = in_table_unit(result)
    if numbers.kind.nunique() < 2:
        return go.Figure()
    panel, x = "column", "row"
    if numbers.row.nunique() < numbers.column.nunique():
        panel, x = x, panel
    return draw_bars(result, numbers, panel, x, "kind", colours=COLOURS, across=2)


def bars_by_method(result: TableResult) -> go.Figure:
    """A panel per kind, a group per column, a bar per method with its 95 % interval.

    Intervals of much more than the tallest bar leave the panel at its top. Rows of
    another metric than the table's have another scale and no bars. The paper's own
    method, the last row, has a colour that stands out.
    """
    table = result.table
    methods = []
    for row in table.row_labels:
        if table.row.get(row, {}).get("metric", table.metric) == table.metric:
            methods.append(row)
    colours = dict(zip(methods, PALETTE[:-1] * len(methods), strict=False))
    colours[methods[-1]] = PALETTE[-1]

    numbers = numbers_of(result)
    numbers = numbers[numbers.row.isin(methods)]
    figure = draw_bars(
        result,
        numbers,
        "kind",
        "column",
        "row",
        colours=colours,
        across=1 if len(table.column_labels) > MANY_COLUMNS else ACROSS,
        shared_y=True,
        error_y="high",
        error_y_minus="low",
    )
    figure.update_traces(error_y={"color": INK, "thickness": 1.2, "width": 3})
    for bars in figure.data:
        if not any(bars.error_y.array):
            bars.error_y = None
    top = MOST_OF_INTERVALS * numbers.value.max()
    if (numbers.value + numbers.high).max() > top:
        figure.update_yaxes(range=[0, top])
    return figure


def bars_by_target(result: TableResult) -> go.Figure:
    """For rows "target / method": a panel per target and kind, a group per column, a
    bar per method."""
    numbers = in_table_unit(result)
    labels = numbers.row.str.split(" / ", n=1)
    numbers = numbers.assign(
        target=labels.str[0],
        method=labels.str[1],
        panel=labels.str[0] + " [" + numbers.kind + "]",
        group=numbers.column.str.split(" / ").str[0],
    )
    targets = list(dict.fromkeys(numbers.target))
    kinds = list(dict.fromkeys(numbers.kind))
    numbers = numbers.sort_values(
        ["target", "kind"], key=lambda names: names.map([*targets, *kinds].index)
    )
    return draw_bars(result, numbers, "panel", "group", "method", shared_y=True)


def bars_by_row(result: TableResult) -> go.Figure:
    """A panel per kind, a group per column, a bar per row."""
    colours = colours_of(result.table.row_labels)
    numbers = in_table_unit(result)
    return draw_bars(
        result, numbers, "kind", "column", "row", colours=colours, turned=True
    )


def bars_by_column(result: TableResult) -> go.Figure:
    """A panel per kind, a group per row, a bar per column."""
    numbers = in_table_unit(result)
    return draw_bars(result, numbers, "kind", "row", "column", turned=True)


def bars_by_part(result: TableResult) -> go.Figure:
    """Milliseconds of an iteration by part, and its whole length; a panel per kind.

    Parts stand side by side, not on top of each other, since they overlap in time.
    """
    numbers = numbers_of(result)
    numbers = numbers[numbers.column.isin(PARTS)]
    in_ms = numbers.assign(value=1000 * numbers.value)
    figure = draw_bars(
        result, in_ms, "kind", "row", "column", colours=colours_of(PARTS)
    )
    return figure.update_yaxes(title_text="ms")


def bars_over_iterations(result: TableResult) -> go.Figure:
    """A bar per iteration, and a line at the window that a fixed length would use."""
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
    """Panels of lines with a dot per number; further options are those of ``draw``."""
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
    """A panel per column, a line per kind over the windows γ, a star on each line's
    highest point."""
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
    """A panel per column, a line per kind over row labels that are numbers.

    A column whose label is a number, too, says of what. Where the printed numbers come
    from a formula, the legend has it.
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
    """A panel per column, a line per kind: by how many per cent the speed at a budget
    is off that at the budget c."""
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
    """A panel per unit, a line per column and kind over the number of tokens with which
    a row's label begins; that axis is logarithmic. Empty where no row
    begins so."""
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
    """A panel per unit and kind, a line per column over the number of layers that are
    computed at once.

    A second calibration, or the same of another model, is the dotted line of the same
    colour.
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
    """What two columns share that differ in calibration or model."""
    return column.split(",")[0].split(": ")[-1]


# -- points ----------------------------------------------------------------------------
def points_against_print(result: TableResult) -> go.Figure:
    """A panel per part of the time: our numbers over the printed ones, a point per row.

    On the diagonal both agree. What was measured took other models' seconds, and has
    no points.
    """
    numbers = numbers_of(result)
    printed = numbers[numbers.kind == "paper"].set_index(["row", "column"]).value
    ours = numbers[numbers.kind.isin(MARKS)]
    ours = ours.join(printed.rename("printed"), on=["row", "column"], how="inner")
    labels = ours.column.str.split(" / ")
    ours = ours.assign(
        method=labels.str[0],
        part=labels.str[1],
        name=labels.str[0] + " [" + ours.kind + "]",
        panel=labels.str[1] + ": ours against print",
    )
    ours = ours[ours.part.isin(PARTS_OF_TIME)]
    ours = ours.sort_values(
        "part", key=lambda parts: parts.map(PARTS_OF_TIME.index), kind="stable"
    )
    methods = [column.split(" / ")[0] for column in result.table.column_labels]
    shades = colours_of(list(dict.fromkeys(methods)))
    figure = draw(
        px.scatter,
        result,
        ours,
        "panel",
        "printed",
        "name",
        colours=dict(zip(ours.name, ours.method.map(shades), strict=True)),
        symbol="name",
        symbol_map=dict(zip(ours.name, ours.kind.map(MARKS), strict=True)),
        hover_name="row",
    )
    figure.update_yaxes(matches=None)
    figure.update_traces(
        marker_size=8, hovertemplate="%{hovertext}: %{x:.2f} printed, %{y:.2f}"
    )
    for panel, numbers_of_part in enumerate(ours.groupby("part", sort=False)):
        largest = numbers_of_part[1][["value", "printed"]].max().max()
        line = {"color": COLOURS["paper"], "dash": "dot"}
        corners = {"x0": 0, "y0": 0, "x1": largest, "y1": largest}
        figure.add_shape(type="line", **corners, line=line, row=1, col=panel + 1)
    return figure


# -- which one -------------------------------------------------------------------------
CHARTS: dict[str, Callable[[TableResult], go.Figure]] = {
    function.__name__: function
    for function in (
        bars_by_column,
        bars_by_kind,
        bars_by_method,
        bars_by_part,
        bars_by_row,
        bars_by_target,
        bars_over_iterations,
        dsi_charts.dots_by_accounting,
        lines_over_budgets,
        lines_over_layers,
        lines_over_lengths,
        lines_over_rows,
        lines_over_windows,
        points_against_print,
        dsi_charts.speedup_heatmaps,
    )
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
    figure = CHARTS[table.chart](result)
    return figure if figure.data else None
