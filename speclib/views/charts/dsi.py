"""Heatmaps of speed-ups, dots per accounting, as plotly figures. Reads values; knows no rule."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from .style import COLOURS, INK, add, finish, panels

PINK, WHITE, DEEP = "#d6498f", "#f4f4f2", "#1f5fa8"
MOST = 2.0  # log2 of the speed-up at which colours end
EVEN = 0.999  # speed-up at the line; at 1 rounding would draw it where all is 1
LEAST = 5.0  # per cent: a smaller difference is not stretched to full colour
ROUND = 3  # decimals that a heatmap carries
TALL = 320  # pixels of a line of panels
BAR = {
    "tickvals": [-2, -1, 0, 1, 2],
    "ticktext": ["≤ ¼", "½", "1", "2", "≥ 4"],
    "title": "speed-up",
    "len": 0.45,
    "y": 0.8,
}


def heatmaps(filled) -> go.Figure:
    """The figure's panels by the rules, then the method's code and how far its time is off them.

    Axes as in the print, acceptance upwards. Pink is slower, white even, blue faster; a line where
    slower begins."""
    maps = filled.figure
    drawn = {
        name: (maps.rules.shares, maps.rules.alphas, values)
        for name, values in maps.rules.panels.items()
        if name in filled.table.row_labels
    }
    drawn["(c) by the method's code"] = maps.shares, maps.alphas, maps.code
    off = 100 * maps.difference
    last = f"the code's time over {maps.against}"
    names = [
        *drawn,
        f"the code's time over<br>{maps.against}:<br>{off.min():.0f} to "
        f"{off.max():.0f} % longer".replace("-0 ", "0 ").replace("0 to 0 %", "0 %"),
    ]
    figure = panels(names, 3)
    for i, (name, found) in enumerate(drawn.items()):
        _speedups(figure, i, name, *found)
    most = max(LEAST, float(abs(off).max()))
    add(
        figure,
        len(drawn),
        go.Heatmap(
            x=maps.shares,
            y=maps.alphas,
            z=off.T.round(2),
            zmin=-most,
            zmax=most,
            colorscale=[(0, DEEP), (0.5, WHITE), (1, PINK)],
            colorbar={"title": "% longer", "len": 0.45, "y": 0.2},
            hovertemplate=_hover(last, "%{z} %"),
        ),
    )
    finish(figure, filled, len(names), 3)
    figure.update_xaxes(title_text="drafter latency / target's", title_standoff=4)
    figure.update_yaxes(title_text="", rangemode="normal")
    figure.update_yaxes(title_text="acceptance rate", col=1)
    return figure.update_layout(height=TALL * -(-len(names) // 3) + 90)


def _speedups(figure, i: int, name: str, shares, alphas, values) -> None:
    """A panel of speed-ups [share, alpha]."""
    values = values.T
    add(
        figure,
        i,
        go.Heatmap(
            x=shares,
            y=alphas,
            z=np.log2(values).round(ROUND),
            zmin=-MOST,
            zmax=MOST,
            colorbar=BAR,
            colorscale=[(0, PINK), (0.5, WHITE), (1, DEEP)],
            showscale=i == 0,
            customdata=values.round(ROUND),
            hovertemplate=_hover(name, "%{customdata} x"),
        ),
    )
    if values.min() < EVEN:
        add(
            figure,
            i,
            go.Contour(
                x=shares,
                y=alphas,
                z=np.log2(values).round(ROUND),
                showscale=False,
                hoverinfo="skip",
                contours={
                    "start": np.log2(EVEN),
                    "end": np.log2(EVEN),
                    "size": 1,
                    "coloring": "none",
                },
                line={"color": "#3b3f46", "width": 1.5},
            ),
        )


def _hover(name: str, value: str) -> str:
    return (
        f"{name}<br>acceptance %{{y}}, drafter latency %{{x}}: {value}<extra></extra>"
    )


def dots(filled) -> go.Figure:
    """A line per column, a dot per row, a bar at their mean: what a choice does to all rows.
    The first line is what Table 1 prints for the same rows; where one rule is exchanged, a stroke
    leads from the mean without that to the mean with it."""
    table, values = filled.table, filled.values["virtual"]
    printed = [
        table.paper.printed("table-1", r, "Speedup DSI vs. SI")
        for r in table.row_labels
    ]
    lines = {
        "printed in Table 1": dict(zip(table.row_labels, printed, strict=True))
    } | {
        c: {r: values[r, c] for r in table.row_labels if (r, c) in values}
        for c in table.column_labels
    }
    means = {
        name: float(np.mean([*found.values()]))
        for name, found in lines.items()
        if found
    }
    figure, bases = panels([""], 1), _bases(table)
    for name, mean in means.items():
        colour = COLOURS["virtual" if name in table.column else "paper"]
        start = means.get(bases.get(name), mean)
        _line(figure, name, lines[name], colour, start, mean)
        change = (
            f" ({mean - start:+.2f})".replace("-", "\N{MINUS SIGN}")
            if start != mean
            else ""
        )
        figure.add_annotation(
            x=1.01,
            xref="paper",
            xanchor="left",
            y=name,
            showarrow=False,
            text=f"<b>{mean:.2f}</b>{change}",
        )
    finish(
        figure,
        filled,
        1,
        1,
        below="DSI over SI: a dot per pair and task,<br>a bar at the mean,"
        " which stands on the right",
    )
    figure.update_yaxes(autorange="reversed", title_text="")
    return figure.update_layout(
        height=28 * len(lines) + 140, margin={"l": 370, "r": 100, "t": 30}
    )


def _bases(table) -> dict[str, str]:
    """Column with one rule exchanged -> the column with none."""
    whole = {
        s["books"]: c
        for c, s in table.column.items()
        if "books" in s and "rule" not in s
    }
    return {c: whole[s["books"]] for c, s in table.column.items() if "rule" in s}


def _line(
    figure, name: str, found: dict, colour: str, start: float, mean: float
) -> None:
    add(
        figure,
        0,
        go.Scatter(
            x=list(found.values()),
            y=[name] * len(found),
            mode="markers",
            showlegend=False,
            marker={"color": colour, "size": 8, "opacity": 0.45},
            text=list(found),
            hovertemplate="%{text}: %{x:.2f} x<extra></extra>",
        ),
    )
    add(
        figure,
        0,
        go.Scatter(
            x=[start, mean],
            y=[name, name],
            mode="lines",
            showlegend=False,
            line={"color": INK, "width": 4},
            hoverinfo="skip",
        ),
    )
    add(
        figure,
        0,
        go.Scatter(
            x=[mean],
            y=[name],
            mode="markers",
            showlegend=False,
            marker={
                "symbol": "line-ns",
                "size": 18,
                "line": {"width": 3, "color": colour},
            },
            hovertemplate="mean %{x:.2f} x<extra></extra>",
        ),
    )
