"""The style and the colours that all charts share.

Backgrounds are transparent. The grey of lines and text is readable on light and on dark
pages. This module does not depend on any particular chart.
"""

from __future__ import annotations

from math import ceil

import plotly.graph_objects as go

# One colour and one dash per kind of number.
COLOURS = {
    "paper": "#8b919c",
    "virtual": "#2f80d0",
    "emulated": "#1f9e77",
    "measured": "#d9722b",
}
DASHES = {"paper": "dot", "virtual": "solid", "emulated": "dash", "measured": "dashdot"}

# Colours for names that are not kinds of number.
PALETTE = ("#a6aab2", "#e0a33e", "#7aa6a1", "#c58fb5", "#8fb36b", "#5a56c9")
SHADES = (*PALETTE, "#c9584c", "#6d7f95")
INK = "#7d838e"
LINE = "rgba(128,132,142,0.25)"

PANEL_HEIGHT = 250  # pixels
LONG_LABEL = 12  # letters; a longer label is broken into two lines

# Sizes of the legend, in pixels.
LETTER_WIDTH = 7
LEGEND_KEY_WIDTH = 46  # a name's line or square, and the gap to the next name
NARROW_PAGE = 700
LEGEND_LINE_HEIGHT = 22


def with_look(figure: go.Figure, lines: int, unit: str, below: str = "") -> go.Figure:
    """Applies the shared style to a figure, as the last step of every chart.

    ``lines``: the number of rows of panels. ``unit``: title of the leftmost y axes.
    ``below``: title of the lowest x axes.
    """
    legend_height = 42 + LEGEND_LINE_HEIGHT * _legend_lines(figure)
    axis = {
        "gridcolor": LINE,
        "zerolinecolor": LINE,
        "linecolor": LINE,
        "tickfont_size": 12,
    }
    figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 12, "family": "system-ui, sans-serif"},
        height=PANEL_HEIGHT * lines + 26 + legend_height,
        margin={"l": 56, "r": 16, "t": legend_height, "b": 56},
        bargap=0.25,
        legend={
            "orientation": "h",
            "title": "",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "x": 0,
        },
    )
    figure.update_xaxes(**axis, tickangle=0, title_text="")
    figure.update_yaxes(**axis, rangemode="tozero", title_text="")
    for panel in figure.select_xaxes():
        domain = figure.layout[_y_axis_of(panel)].domain
        is_lowest = domain is None or domain[0] < 0.01
        panel.title.text = below if is_lowest else ""
    if unit:
        figure.update_yaxes(title_text=unit, col=1)
    return figure.update_annotations(font_size=12)


def _y_axis_of(x_axis: go.layout.XAxis) -> str:
    """The layout's name for the y axis that belongs to an x axis."""
    return (x_axis.anchor or "y").replace("y", "yaxis")


def _legend_lines(figure: go.Figure) -> int:
    """The number of lines in the legend on a narrow page, at least 1."""
    width = 0
    for trace in figure.data:
        if trace.name and trace.showlegend is not False:
            width += LETTER_WIDTH * len(trace.name) + LEGEND_KEY_WIDTH
    return max(1, ceil(width / NARROW_PAGE))


def wrap_label(label: str) -> str:
    """An axis label, wrapped if it is long, so that plotly does not rotate it."""
    if " / " in label:
        return label.replace(" / ", "<br>")
    if len(label) > LONG_LABEL:
        return "<br>".join(label.rsplit(" ", 1))
    return label
