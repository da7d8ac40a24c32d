"""The DSI paper's charts: heatmaps of speed-ups, and dots per accounting.

Reads numbers of tables; knows no rule of accounting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from speclab.papers.figures import HeatmapFigure
from speclab.papers.paper_schema import Table
from speclab.papers.table_result import TableResult

from .style import COLOURS, INK, Panels
from .values import column_values

# -- heatmaps --------------------------------------------------------------------------
PINK = "#d6498f"
WHITE = "#f4f4f2"
BLUE = "#1f5fa8"
OUTLINE = "#3b3f46"  # of the region where something is slower

LARGEST_LOG = 2.0  # log2 of the speed-up at which colours end
EVEN = 0.999  # speed-up at the outline; at 1, rounding would draw it where all is 1
SMALLEST_SPAN = 5.0  # per cent: a smaller difference is not stretched to full colour
DECIMALS = 3  # of the numbers that a heatmap carries

HEATMAPS_ACROSS = 3
HEATMAP_HEIGHT = 320  # pixels of a line of panels
SPEEDUP_BAR = {
    "tickvals": [-2, -1, 0, 1, 2],
    "ticktext": ["≤ ¼", "½", "1", "2", "≥ 4"],
    "title": "speed-up",
    "len": 0.45,
    "y": 0.8,
}


class Heatmap(NamedTuple):
    """A panel: speed-ups over the drafter's share of the target's latency and the
    acceptance rate, [shares, alphas]."""

    name: str
    shares: np.ndarray
    alphas: np.ndarray
    speedups: np.ndarray


def speedup_heatmaps(result: TableResult) -> go.Figure | None:
    """The figure's panels by the rules, then the method's code, then by how much the
    code's time is off that of the rules.

    Axes are as in the print, with the acceptance rate upwards. Pink is slower, white
    even, blue faster; an outline stands where slower begins. None for a table whose
    heatmaps were not computed.
    """
    maps = result.figure
    if not isinstance(maps, HeatmapFigure):
        return None

    heatmaps = []
    for name, speedups in maps.rules.panels.items():
        if name in result.table.row_labels:
            shares, alphas = maps.rules.shares, maps.rules.alphas
            heatmaps.append(Heatmap(name, shares, alphas, speedups))
    code = Heatmap("(c) by the method's code", maps.shares, maps.alphas, maps.code)
    heatmaps.append(code)

    titles = [heatmap.name for heatmap in heatmaps]
    panels = Panels([*titles, _difference_title(maps)], HEATMAPS_ACROSS)
    for panel, heatmap in enumerate(heatmaps):
        _add_speedups(panels, panel, heatmap)
    _add_difference(panels, len(heatmaps), maps)

    figure = panels.finish(result)
    figure.update_xaxes(title_text="drafter latency / target's", title_standoff=4)
    figure.update_yaxes(title_text="", rangemode="normal")
    figure.update_yaxes(title_text="acceptance rate", col=1)
    return figure.update_layout(height=HEATMAP_HEIGHT * panels.lines + 90)


def _difference_title(maps: HeatmapFigure) -> str:
    """The last panel's title, with the smallest and largest difference."""
    percent = 100 * maps.difference
    span = f"{percent.min():.0f} to {percent.max():.0f} % longer"
    span = span.replace("-0 ", "0 ").replace("0 to 0 %", "0 %")
    return f"the code's time over<br>{maps.against}:<br>{span}"


def _add_speedups(panels: Panels, panel: int, heatmap: Heatmap) -> None:
    """Adds a heatmap, and the outline of the region where it is below 1."""
    speedups = heatmap.speedups.T
    colours = np.log2(speedups).round(DECIMALS)
    trace = go.Heatmap(
        x=heatmap.shares,
        y=heatmap.alphas,
        z=colours,
        zmin=-LARGEST_LOG,
        zmax=LARGEST_LOG,
        colorbar=SPEEDUP_BAR,
        colorscale=[(0, PINK), (0.5, WHITE), (1, BLUE)],
        showscale=panel == 0,
        customdata=speedups.round(DECIMALS),
        hovertemplate=_hover_text(heatmap.name, "%{customdata} x"),
    )
    panels.add(panel, trace)

    if speedups.min() < EVEN:
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
        panels.add(panel, outline)


def _add_difference(panels: Panels, panel: int, maps: HeatmapFigure) -> None:
    """Adds by how many per cent the code takes longer than the rules say."""
    percent = 100 * maps.difference
    span = max(SMALLEST_SPAN, float(abs(percent).max()))
    trace = go.Heatmap(
        x=maps.shares,
        y=maps.alphas,
        z=percent.T.round(2),
        zmin=-span,
        zmax=span,
        colorscale=[(0, BLUE), (0.5, WHITE), (1, PINK)],
        colorbar={"title": "% longer", "len": 0.45, "y": 0.2},
        hovertemplate=_hover_text(f"the code's time over {maps.against}", "%{z} %"),
    )
    panels.add(panel, trace)


def _hover_text(name: str, value: str) -> str:
    return (
        f"{name}<br>acceptance %{{y}}, drafter latency %{{x}}: {value}<extra></extra>"
    )


# -- dots ------------------------------------------------------------------------------
PRINTED = "printed in Table 1"
LINE_HEIGHT = 28  # pixels of a line of dots


def dots_by_accounting(result: TableResult) -> go.Figure:
    """A line per column, a dot per row, a bar at their mean: what a choice of
    accounting does to all rows.

    The first line is what Table 1 prints for the same rows. Where one rule is
    exchanged, a stroke leads from the mean without that to the mean with it.
    """
    table = result.table
    lines = {PRINTED: _printed_speedups(table)}
    for column in table.column_labels:
        lines[column] = column_values(result, "virtual", column)
    means = {}
    for name, speedups in lines.items():
        if speedups:
            means[name] = float(np.mean([*speedups.values()]))

    panels = Panels([""], across=1)
    bases = _bases(table)
    for name, mean in means.items():
        colour = COLOURS["virtual" if name in table.column else "paper"]
        base = bases.get(name)
        base_mean = means.get(base, mean) if base else mean
        _add_dots(panels, name, lines[name], colour)
        _add_stroke(panels, name, base_mean, mean)
        _add_mean(panels, name, mean, colour)
        _write_mean(panels.figure, name, base_mean, mean)

    below = (
        "DSI over SI: a dot per pair and task,<br>"
        "a bar at the mean, which stands on the right"
    )
    figure = panels.finish(result, below)
    figure.update_yaxes(autorange="reversed", title_text="")
    return figure.update_layout(
        height=LINE_HEIGHT * len(lines) + 140, margin={"l": 370, "r": 100, "t": 30}
    )


def _printed_speedups(table: Table) -> dict[str, float]:
    """What the paper's Table 1 prints for the rows of this table."""
    speedups = {}
    for row in table.row_labels:
        printed = table.paper.printed("table-1", row, "Speedup DSI vs. SI")
        if printed is not None:
            speedups[row] = printed
    return speedups


def _bases(table: Table) -> dict[str, str]:
    """The column that exchanges no rule, for each column with one rule exchanged."""
    plain_columns = {}
    for column, settings in table.column.items():
        if "books" in settings and "rule" not in settings:
            plain_columns[settings["books"]] = column

    bases = {}
    for column, settings in table.column.items():
        if "rule" in settings:
            bases[column] = plain_columns[settings["books"]]
    return bases


def _add_dots(
    panels: Panels, name: str, speedups: Mapping[str, float], colour: str
) -> None:
    """Adds a dot per row."""
    trace = go.Scatter(
        x=list(speedups.values()),
        y=[name] * len(speedups),
        mode="markers",
        showlegend=False,
        marker={"color": colour, "size": 8, "opacity": 0.45},
        text=list(speedups),
        hovertemplate="%{text}: %{x:.2f} x<extra></extra>",
    )
    panels.add(0, trace)


def _add_stroke(panels: Panels, name: str, start: float, end: float) -> None:
    """Adds the stroke between the means without and with a rule."""
    trace = go.Scatter(
        x=[start, end],
        y=[name, name],
        mode="lines",
        showlegend=False,
        line={"color": INK, "width": 4},
        hoverinfo="skip",
    )
    panels.add(0, trace)


def _add_mean(panels: Panels, name: str, mean: float, colour: str) -> None:
    """Adds the bar at the mean."""
    marker = {
        "symbol": "line-ns",
        "size": 18,
        "line": {"width": 3, "color": colour},
    }
    trace = go.Scatter(
        x=[mean],
        y=[name],
        mode="markers",
        showlegend=False,
        marker=marker,
        hovertemplate="mean %{x:.2f} x<extra></extra>",
    )
    panels.add(0, trace)


def _write_mean(figure: go.Figure, name: str, base_mean: float, mean: float) -> None:
    """Writes the mean at the right, with its difference to the base where it has
    one."""
    text = f"<b>{mean:.2f}</b>"
    if mean != base_mean:
        change = f"{mean - base_mean:+.2f}".replace("-", "\N{MINUS SIGN}")
        text = f"{text} ({change})"
    figure.add_annotation(
        x=1.01,
        xref="paper",
        xanchor="left",
        y=name,
        showarrow=False,
        text=text,
    )
