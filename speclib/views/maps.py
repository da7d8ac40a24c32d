"""Heatmaps of speed-ups, dots per accounting, as plotly figures. Reads values; knows no rule."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from .frame import add, finish, panels

PINK, WHITE, DEEP = "#d6498f", "#f4f4f2", "#1f5fa8"
MOST = 2.0                      # log2 of the speed-up at which colours end
LEAST = 5.0                     # per cent: a smaller difference is not stretched to full colour
ROUND = 3                       # decimals that a heatmap carries
TALL = 300                      # pixels of a line of panels


def heatmaps(filled) -> go.Figure:
    """The figure's panels by the rules, then the method's code and how far its time is off them.

    Pink is slower, white even, blue faster."""
    maps = filled.figure
    drawn = {name: (maps.rules.shares, maps.rules.alphas, values)
             for name, values in maps.rules.panels.items() if name in filled.table.row_labels}
    drawn["(c) by the method's code"] = maps.shares, maps.alphas, maps.code
    names = [*drawn, f"the code's time over {maps.against}"]
    figure = panels(names, 3)
    for i, (name, (shares, alphas, values)) in enumerate(drawn.items()):
        bar = {"title": "speed-up", "tickvals": [-2, -1, 0, 1, 2], "len": 0.45, "y": 0.8,
               "ticktext": ["¼", "½", "1", "2", "≥ 4"]}
        add(figure, i, go.Heatmap(
            x=alphas, y=shares, z=np.log2(values).round(ROUND), zmin=-MOST, zmax=MOST,
            colorscale=[(0, PINK), (0.5, WHITE), (1, DEEP)], showscale=i == 0, colorbar=bar,
            customdata=values.round(ROUND), hovertemplate=_hover(name, "%{customdata} x")))
    off = 100 * maps.difference
    most = max(LEAST, float(abs(off).max()))
    add(figure, len(drawn), go.Heatmap(
        x=maps.alphas, y=maps.shares, z=off.round(2), zmin=-most, zmax=most,
        colorscale=[(0, DEEP), (0.5, WHITE), (1, PINK)],
        colorbar={"title": "%", "len": 0.45, "y": 0.2},
        hovertemplate=_hover(names[-1], "%{z} %")))
    finish(figure, filled, len(names), 3, below="acceptance rate")
    figure.update_yaxes(title_text="", rangemode="normal")
    figure.update_yaxes(title_text="drafter latency", col=1)
    return figure.update_layout(height=TALL * -(-len(names) // 3) + 90)


def _hover(name: str, value: str) -> str:
    return f"{name}<br>acceptance %{{x}}, drafter latency %{{y}}: {value}<extra></extra>"


def dots(filled) -> go.Figure:
    """A line per column, a dot per row, a bar at their mean: what a choice does to all rows.
    The first line is what Table 1 prints for the same rows."""
    table, values = filled.table, filled.values["virtual"]
    printed = {r: table.paper.printed("table-1", r, "Speedup DSI vs. SI") for r in table.row_labels}
    lines = {"printed in Table 1": printed} | {
        c: {r: values[r, c] for r in table.row_labels if (r, c) in values}
        for c in table.column_labels}
    figure = panels([""], 1)
    for name, found in lines.items():
        if found:
            colour = "#8b919c" if name.startswith("printed") else "#2f80d0"
            add(figure, 0, go.Scatter(
                x=list(found.values()), y=[name] * len(found), mode="markers", showlegend=False,
                marker={"color": colour, "size": 8, "opacity": 0.55}, text=list(found),
                hovertemplate="%{text}: %{x:.2f} x<extra></extra>"))
            add(figure, 0, go.Scatter(
                x=[float(np.mean([*found.values()]))], y=[name], mode="markers", showlegend=False,
                marker={"symbol": "line-ns", "size": 18, "line": {"width": 3, "color": colour}},
                hovertemplate="mean %{x:.2f} x<extra></extra>"))
    finish(figure, filled, 1, 1, below="DSI over SI; a dot per pair and task, a bar at the mean")
    figure.update_yaxes(autorange="reversed", title_text="")
    return figure.update_layout(height=28 * len(lines) + 140, margin_l=370)
