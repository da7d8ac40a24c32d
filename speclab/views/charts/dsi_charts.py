"""The DSI paper's charts: heatmaps of speed-ups, and dots by accounting rule.

This module reads the tables' numbers, and applies no accounting rule.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType
from plotly.subplots import make_subplots

from speclab.papers.figures import HeatmapFigure
from speclab.papers.table_result import TableResult

from .look import COLOURS, with_look

# -- heatmaps --------------------------------------------------------------------------
PINK = "#d6498f"
WHITE = "#f4f4f2"
BLUE = "#1f5fa8"
OUTLINE = "#3b3f46"  # around the slower region

LARGEST_LOG = 2.0  # log2 of the speed-up with the strongest colour
EVEN = 0.999  # speed-up at the outline; at 1, rounding would outline areas of exactly 1
SMALLEST_SPAN = 5.0  # smallest difference with the strongest colour, in per cent
DECIMALS = 3  # decimals of a heatmap's numbers

HEATMAPS_ACROSS = 3
HEATMAP_HEIGHT = 320  # of a row of panels, in pixels
SPEEDUP_BAR = {
    "tickvals": [-2, -1, 0, 1, 2],
    "ticktext": ["≤ ¼", "½", "1", "2", "≥ 4"],
    "title": "speed-up",
    "len": 0.45,
    "y": 0.8,
}


class Heatmap(NamedTuple):
    """A panel of speed-ups [shares, alphas].

    shares: drafter latency over target latency. alphas: acceptance rates.
    """

    name: str
    shares: np.ndarray
    alphas: np.ndarray
    speedups: np.ndarray


def speedup_heatmaps(result: TableResult) -> go.Figure:
    """Panels of speed-ups by the paper's rules, and by the method's code.

    The last panel shows the relative difference between the two times. Axes are as
    printed, with the acceptance rate upwards. Pink means slower, white equal, blue
    faster; an outline surrounds the slower region. The figure is empty for a table
    whose heatmaps were not computed.
    """
    maps = result.figure
    if not isinstance(maps, HeatmapFigure):
        return go.Figure()

    heatmaps = []
    for name, speedups in maps.rules.panels.items():
        if name in result.table.row_labels:
            shares, alphas = maps.rules.shares, maps.rules.alphas
            heatmaps.append(Heatmap(name, shares, alphas, speedups))
    code = Heatmap("(c) by the method's code", maps.shares, maps.alphas, maps.code)
    heatmaps.append(code)

    titles = [*(heatmap.name for heatmap in heatmaps), _difference_title(maps)]
    lines = ceil(len(titles) / HEATMAPS_ACROSS)
    figure = make_subplots(
        rows=lines,
        cols=HEATMAPS_ACROSS,
        subplot_titles=titles,
        vertical_spacing=min(0.35 / lines, 0.22),
        horizontal_spacing=0.07,
    )
    for panel, heatmap in enumerate(heatmaps):
        for trace in _speedup_traces(heatmap, has_scale=panel == 0):
            _add_to_panel(figure, panel, trace)
    _add_to_panel(figure, len(heatmaps), _difference_trace(maps))

    with_look(figure, lines, "acceptance rate")
    figure.update_xaxes(title_text="drafter latency / target's", title_standoff=4)
    figure.update_yaxes(rangemode="normal")
    return figure.update_layout(height=HEATMAP_HEIGHT * lines + 90)


def _add_to_panel(figure: go.Figure, panel: int, trace: BaseTraceType) -> None:
    line, column = divmod(panel, HEATMAPS_ACROSS)
    figure.add_trace(trace, row=line + 1, col=column + 1)


def _difference_title(maps: HeatmapFigure) -> str:
    """The last panel's title, with the smallest and the largest difference."""
    percent = 100 * maps.difference
    span = f"{percent.min():.0f} to {percent.max():.0f} % longer"
    span = span.replace("-0 ", "0 ").replace("0 to 0 %", "0 %")
    return f"the code's time over<br>{maps.against}:<br>{span}"


def _speedup_traces(heatmap: Heatmap, *, has_scale: bool) -> list[BaseTraceType]:
    """A heatmap, and the outline of the region where it is below 1."""
    speedups = heatmap.speedups.T
    colours = np.log2(speedups).round(DECIMALS)
    cells = go.Heatmap(
        x=heatmap.shares,
        y=heatmap.alphas,
        z=colours,
        zmin=-LARGEST_LOG,
        zmax=LARGEST_LOG,
        colorbar=SPEEDUP_BAR,
        colorscale=[(0, PINK), (0.5, WHITE), (1, BLUE)],
        showscale=has_scale,
        customdata=speedups.round(DECIMALS),
        hovertemplate=_hover_text(heatmap.name, "%{customdata} x"),
    )
    if speedups.min() >= EVEN:
        return [cells]
    level = np.log2(EVEN)
    outline = go.Contour(
        x=heatmap.shares,
        y=heatmap.alphas,
        z=colours,
        showscale=False,
        hoverinfo="skip",
        contours={"start": level, "end": level, "size": 1, "coloring": "none"},
        line={"color": OUTLINE, "width": 1.5},
    )
    return [cells, outline]


def _difference_trace(maps: HeatmapFigure) -> go.Heatmap:
    """A heatmap of how much longer the code takes than predicted, in per cent."""
    percent = 100 * maps.difference
    span = max(SMALLEST_SPAN, float(abs(percent).max()))
    return go.Heatmap(
        x=maps.shares,
        y=maps.alphas,
        z=percent.T.round(2),
        zmin=-span,
        zmax=span,
        colorscale=[(0, BLUE), (0.5, WHITE), (1, PINK)],
        colorbar={"title": "% longer", "len": 0.45, "y": 0.2},
        hovertemplate=_hover_text(f"the code's time over {maps.against}", "%{z} %"),
    )


def _hover_text(name: str, value: str) -> str:
    return (
        f"{name}<br>acceptance %{{y}}, drafter latency %{{x}}: {value}<extra></extra>"
    )


# -- dots ------------------------------------------------------------------------------
PRINTED = "printed in Table 1"
LINE_HEIGHT = 28  # of a line of dots, in pixels


def dots_by_accounting(result: TableResult) -> go.Figure:
    """The effect of each accounting rule: a line per column, with a dot per row.

    A bar marks the mean. The first line shows Table 1's printed numbers for the same
    rows.
    """
    table = result.table
    printed = {}
    for row in table.row_labels:
        printed[row] = table.paper.printed("table-1", row, "Speedup DSI vs. SI")
    lines = {PRINTED: printed}
    for column in table.column_labels:
        values = result.values["virtual"]
        lines[column] = {row: values.get((row, column)) for row in table.row_labels}

    figure = go.Figure()
    for name, speedup_of_row in lines.items():
        colour = COLOURS["paper" if name == PRINTED else "virtual"]
        speedups = {row: x for row, x in speedup_of_row.items() if x is not None}
        if speedups:
            _add_line_of_dots(figure, name, speedups, colour)
    below = (
        "DSI over SI: a dot per pair and task,<br>"
        "a bar at the mean, which is written on the right"
    )
    with_look(figure, 1, "", below)
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(
        height=LINE_HEIGHT * len(lines) + 140,
        margin={"l": 400, "r": 60, "t": 30},
        showlegend=False,
    )


def _add_line_of_dots(
    figure: go.Figure, name: str, speedups: dict[str, float], colour: str
) -> None:
    """Adds a dot per row, a bar at their mean, and the mean as a number."""
    figure.add_scatter(
        x=list(speedups.values()),
        y=[name] * len(speedups),
        mode="markers",
        marker={"color": colour, "size": 8, "opacity": 0.45},
        text=list(speedups),
        hovertemplate="%{text}: %{x:.2f} x<extra></extra>",
    )
    mean = float(np.mean(list(speedups.values())))
    bar = {"symbol": "line-ns", "size": 18, "line": {"width": 3, "color": colour}}
    figure.add_scatter(x=[mean], y=[name], mode="markers", marker=bar, hoverinfo="x")
    figure.add_annotation(
        x=1.01,
        xref="paper",
        xanchor="left",
        y=name,
        showarrow=False,
        text=f"<b>{mean:.2f}</b>",
    )
