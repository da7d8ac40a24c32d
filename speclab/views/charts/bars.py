"""Charts of bars: kinds, methods, rows, columns, parts of an iteration side by side.

Reads numbers of tables; knows no run and no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from speclab.papers.figures import DraftLengths
from speclab.papers.paper_schema import Table
from speclab.papers.table_result import TableResult

from .style import ACROSS, COLOURS, INK, PALETTE, SHADES, Panels, wrap_labels
from .values import filled_columns, unit_of_column

MANY_LABELS = 8  # more labels than this need the whole width
MANY_COLUMNS = 4  # more groups of bars than this need the whole width
MOST_OF_INTERVALS = 2  # intervals are shown up to so many times the tallest bar
PARTS = ("draft", "target", "verification", "communication")
WHOLE = "time per iteration"

# A bar's height; None leaves a gap.
Height = float | None


def add_bar(
    panels: Panels,
    panel: int,
    labels: Sequence[str],
    heights: Sequence[Height],
    name: str,
    shade: int,
) -> None:
    """Adds the bars called ``name`` to every group of a panel."""
    bar = go.Bar(
        x=labels,
        y=heights,
        name=name,
        legendgroup=name,
        marker_color=SHADES[shade % len(SHADES)],
        hovertemplate=f"{name}, %{{x}}: %{{y:.3g}}<extra></extra>",
    )
    panels.add(panel, bar)


def is_empty(heights: Iterable[Height]) -> bool:
    """Whether no bar has a height."""
    return all(height is None for height in heights)


# -- kinds side by side ----------------------------------------------------------------
def bars_by_kind(result: TableResult) -> go.Figure | None:
    """A bar per kind, print beside ours; a panel per column, or per row if those are
    fewer.

    Columns of another unit than the table's have another scale and no bars. None where
    there is one kind only: its bars would compare nothing.
    """
    if len(result.kinds) < 2:
        return None

    table = result.table
    columns = [c for c in table.column_labels if unit_of_column(table, c) == table.unit]
    panel_per_row = len(table.row_labels) < len(columns)
    titles: Sequence[str] = table.row_labels if panel_per_row else columns
    labels: Sequence[str] = columns if panel_per_row else table.row_labels

    across = 1 if len(labels) > MANY_LABELS else 2
    panels = Panels(titles, across, shared_y=across == 1)
    kinds_in_legend: set[str] = set()
    for panel, title in enumerate(titles):
        for kind in result.kinds:
            values = result.values[kind]
            if panel_per_row:
                heights = [values.get((title, label)) for label in labels]
            else:
                heights = [values.get((label, title)) for label in labels]
            if is_empty(heights):
                continue  # no gap where its bars would stand
            bar = go.Bar(
                x=wrap_labels(labels),
                y=heights,
                name=kind,
                legendgroup=kind,
                showlegend=kind not in kinds_in_legend,
                marker_color=COLOURS[kind],
                hovertemplate=f"%{{x}}: %{{y}} [{kind}]<extra></extra>",
            )
            panels.add(panel, bar)
            kinds_in_legend.add(kind)
    return panels.finish(result)


# -- methods side by side --------------------------------------------------------------
class _Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def bars_by_method(result: TableResult) -> go.Figure:
    """A panel per kind, a group per column, a bar per method with its 95 % interval.

    Intervals of much more than the tallest bar leave the panel at its top.
    Rows of another metric than the table's have another scale and no bars. The paper's
    own method, the last row, has a colour that stands out.
    """
    table = result.table
    methods = [
        row for row in table.row_labels if _metric_of(table, row) == table.metric
    ]
    columns = table.column_labels
    intervals = _intervals(result)

    across = 1 if len(columns) > MANY_COLUMNS else ACROSS
    panels = Panels(result.kinds, across, shared_y=True)
    methods_in_legend: set[str] = set()
    for panel, kind in enumerate(result.kinds):
        values = result.values[kind]
        for index, method in enumerate(methods):
            heights = [values.get((method, column)) for column in columns]
            if is_empty(heights):
                continue
            own_intervals = [intervals.get((kind, method, c)) for c in columns]
            bar = go.Bar(
                x=wrap_labels(columns),
                y=heights,
                name=method,
                legendgroup=method,
                showlegend=method not in methods_in_legend,
                error_y=_error_bars(heights, own_intervals),
                marker_color=_method_colour(index, len(methods)),
                hovertemplate=f"{method}, %{{x}}: %{{y:.2f}} [{kind}]<extra></extra>",
            )
            panels.add(panel, bar)
            methods_in_legend.add(method)
    return _cut_wide_intervals(panels.finish(result), intervals.values())


def _cut_wide_intervals(figure: go.Figure, intervals: Iterable[_Interval]) -> go.Figure:
    """The chart with an axis that very wide intervals leave, so that bars are seen.

    Those of two requests may reach to many times the number.
    """
    heights: list[float] = []
    for bar in figure.data:
        heights += [height for height in bar.y if height is not None]
    top = MOST_OF_INTERVALS * max(heights, default=0.0)
    if any(interval.high > top for interval in intervals):
        figure.update_yaxes(range=[0, top])
    return figure


def _metric_of(table: Table, row: str) -> object:
    return table.row.get(row, {}).get("metric", table.metric)


def _intervals(result: TableResult) -> dict[tuple[str, str, str], _Interval]:
    """The 95 % intervals of the table's metric, by (kind, row, column)."""
    intervals = {}
    for line in result.lines:
        is_of_table = line.metric == result.table.metric
        if is_of_table and line.low is not None and line.high is not None:
            cell = (line.kind, line.row, line.column)
            intervals[cell] = _Interval(line.low, line.high)
    return intervals


def _error_bars(
    heights: Sequence[Height], intervals: Sequence[_Interval | None]
) -> dict[str, object] | None:
    """The intervals as plotly's distances above and below the bars; None where no bar
    has one."""
    if not any(interval and interval.low < interval.high for interval in intervals):
        return None

    above: list[float] = []
    below: list[float] = []
    for height, interval in zip(heights, intervals, strict=True):
        if height is None or interval is None:
            above.append(0)
            below.append(0)
        else:
            above.append(interval.high - height)
            below.append(height - interval.low)
    return {
        "array": above,
        "arrayminus": below,
        "color": INK,
        "thickness": 1.2,
        "width": 3,
    }


def _method_colour(index: int, methods: int) -> str:
    if index == methods - 1:
        return PALETTE[-1]
    return PALETTE[index % (len(PALETTE) - 1)]


def bars_by_target(result: TableResult) -> go.Figure | None:
    """For rows "target / method": a panel per target and kind, a group per column, a
    bar per method."""
    targets: list[str] = []
    methods: list[str] = []
    for row in result.table.row_labels:
        target, _, method = row.partition(" / ")
        targets.append(target)
        methods.append(method)

    shown = []
    for target in dict.fromkeys(targets):
        for kind in result.kinds:
            rows = [row for row, _ in result.values[kind]]
            if any(row.startswith(f"{target} / ") for row in rows):
                shown.append((target, kind))
    if not shown:
        return None

    panels = Panels(
        [f"{target} [{kind}]" for target, kind in shown], across=1, shared_y=True
    )
    for panel, (target, kind) in enumerate(shown):
        values = result.values[kind]
        columns = filled_columns(result, kind, result.table.unit)
        labels = [column.split(" / ")[0] for column in columns]
        for shade, method in enumerate(dict.fromkeys(methods)):
            row = f"{target} / {method}"
            heights = [values.get((row, column)) for column in columns]
            if not is_empty(heights):
                add_bar(panels, panel, labels, heights, method, shade)
    panels.name_once()
    return panels.finish(result)


# -- rows or columns side by side ------------------------------------------------------
def bars_by_row(result: TableResult) -> go.Figure:
    """A panel per kind, a group per column, a bar per row."""
    rows = result.table.row_labels
    panels = Panels(result.kinds, across=1)
    for panel, kind in enumerate(result.kinds):
        values = result.values[kind]
        columns = filled_columns(result, kind, result.table.unit)
        for row in _rows_with_values(result, kind, columns):
            heights = [values.get((row, column)) for column in columns]
            labels = _wrap_few(columns)
            add_bar(panels, panel, labels, heights, row, rows.index(row))
    return _finish_groups(panels, result)


def bars_by_column(result: TableResult) -> go.Figure:
    """A panel per kind, a group per row, a bar per column."""
    columns_of_kinds = []
    for kind in result.kinds:
        columns_of_kinds += filled_columns(result, kind, result.table.unit)
    shown = [c for c in result.table.column_labels if c in columns_of_kinds]

    panels = Panels(result.kinds, across=1)
    for panel, kind in enumerate(result.kinds):
        values = result.values[kind]
        columns = filled_columns(result, kind, result.table.unit)
        rows = _rows_with_values(result, kind, columns)
        for column in columns:
            heights = [values.get((row, column)) for row in rows]
            labels = _wrap_few(rows)
            add_bar(panels, panel, labels, heights, column, shown.index(column))
    return _finish_groups(panels, result)


def _rows_with_values(
    result: TableResult, kind: str, columns: Sequence[str]
) -> list[str]:
    """The rows that have a number of a kind in one of the columns."""
    values = result.values[kind]
    rows = []
    for row in result.table.row_labels:
        if any((row, column) in values for column in columns):
            rows.append(row)
    return rows


def _wrap_few(labels: Sequence[str]) -> Sequence[str]:
    """The labels on several lines; as they are where they are many, to be turned."""
    return labels if len(labels) > MANY_LABELS else wrap_labels(labels)


def _finish_groups(panels: Panels, result: TableResult) -> go.Figure:
    """The finished chart, with turned labels where a panel has many groups."""
    panels.name_once()
    figure = panels.finish(result)
    if any(len(bar.x) > MANY_LABELS for bar in figure.data):
        figure.update_xaxes(tickangle=-35)
        figure.update_layout(margin_b=120, height=figure.layout.height + 64)
    return figure


# -- parts of an iteration -------------------------------------------------------------
def bars_by_part(result: TableResult) -> go.Figure | None:
    """Milliseconds of an iteration by part, and its whole length; a panel per kind.

    Parts stand side by side, not on top of each other, since they overlap in time.
    """
    kinds = [kind for kind in result.kinds if _has_parts(result, kind)]
    if not kinds:
        return None

    rows = list(result.table.row_labels)
    panels = Panels(kinds, across=1)
    for panel, kind in enumerate(kinds):
        values = result.values[kind]
        for shade, part in enumerate((*PARTS, WHOLE)):
            milliseconds: list[Height] = []
            for row in rows:
                seconds = values.get((row, part))
                milliseconds.append(None if seconds is None else 1000 * seconds)
            add_bar(panels, panel, rows, milliseconds, part, shade)
    panels.name_once()
    figure = panels.finish(result)
    return figure.update_yaxes(title_text="ms")


def _has_parts(result: TableResult, kind: str) -> bool:
    return any(column in PARTS for _, column in result.values[kind])


# -- iterations ------------------------------------------------------------------------
def bars_over_iterations(result: TableResult) -> go.Figure:
    """A bar per iteration, and a line at the window that a fixed length would use."""
    panels = Panels(result.table.column_labels)
    last_iteration = 0
    for kind in result.kinds:
        values = result.values[kind]
        iterations = [int(row) for row, _ in values]
        last_iteration = max([last_iteration, *iterations])
        bar = go.Bar(
            x=iterations,
            y=list(values.values()),
            name=kind,
            marker_color=COLOURS[kind],
        )
        panels.add(0, bar)

    if isinstance(result.figure, DraftLengths):
        window = result.figure.gamma
        line = go.Scatter(
            x=[0.5, last_iteration + 0.5],
            y=[window, window],
            name=f"fixed window γ = {window}",
            mode="lines",
            line={"dash": "dot", "color": "#d64545"},
        )
        panels.add(0, line)
    return panels.finish(result, below=result.table.rows)
