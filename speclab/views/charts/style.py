"""What all charts share: panels beside each other, colours, and the look.

Backgrounds are transparent. Lines and text are a grey that reads on light and on dark
pages. Knows no form of chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType
from plotly.subplots import make_subplots

from speclab.papers.table_result import TableResult
from speclab.views.tables.grid import shown_unit

# One colour per kind of number.
COLOURS = {
    "paper": "#8b919c",
    "virtual": "#2f80d0",
    "emulated": "#1f9e77",
    "measured": "#d9722b",
}
# One dash per kind, where colours tell methods apart.
DASHES = {"paper": "dot", "virtual": "solid", "emulated": "dash", "measured": "dashdot"}

PALETTE = ("#a6aab2", "#e0a33e", "#7aa6a1", "#c58fb5", "#8fb36b", "#5a56c9")
SHADES = (*PALETTE, "#c9584c", "#6d7f95")  # for charts with many methods
INK = "#7d838e"
LINE = "rgba(128,132,142,0.25)"

ACROSS = 3  # panels beside each other, at most
PANEL_HEIGHT = 250  # pixels
LONG_LABEL = 12  # letters; a longer label is broken into two lines

# What the legend takes, in pixels.
LETTER_WIDTH = 7
LEGEND_KEY_WIDTH = 46  # of a name's line or square, with the gap before the next name
NARROW_PAGE = 700
LEGEND_LINE_HEIGHT = 22


class Panels:
    """A figure of several panels, filled from left to right and from top to bottom.

        panels = Panels(["humaneval", "gsm8k"])
        panels.add(0, go.Bar(...))
        panels.add(1, go.Bar(...))
        figure = panels.finish(result)

    ``titles`` stand above the panels. At most ``across`` panels are beside each other;
    with ``shared_y`` all of them have the same y axis.
    """

    def __init__(
        self, titles: Sequence[str], across: int = ACROSS, *, shared_y: bool = False
    ):
        self.across = min(len(titles), across)
        self.lines = ceil(len(titles) / self.across)
        self.figure = make_subplots(
            rows=self.lines,
            cols=self.across,
            subplot_titles=list(titles),
            shared_yaxes="all" if shared_y else False,
            vertical_spacing=min(0.35 / self.lines, 0.22),
            horizontal_spacing=0.07,
        )

    def add(self, panel: int, trace: BaseTraceType) -> None:
        """Adds a trace to the panel with this number, counted from 0."""
        line, column = divmod(panel, self.across)
        self.figure.add_trace(trace, row=line + 1, col=column + 1)

    def name_once(self) -> None:
        """Leaves every name in the legend once, at its first trace."""
        names: set[str] = set()
        for trace in self.figure.data:
            trace.showlegend = trace.name not in names
            names.add(trace.name)

    def finish(self, result: TableResult, below: str = "") -> go.Figure:
        """The figure with its look; every chart ends here.

        The table's unit stands on the outer y axes, and ``below`` under the lowest
        panels.
        """
        figure = self.figure
        legend_height = 42 + LEGEND_LINE_HEIGHT * self._legend_lines()
        axis = {
            "gridcolor": LINE,
            "zerolinecolor": LINE,
            "linecolor": LINE,
            "tickfont_size": 12,
        }
        legend = {
            "orientation": "h",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "x": 0,
        }
        figure.update_layout(
            template="none",
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            font={"color": INK, "size": 12, "family": "system-ui, sans-serif"},
            height=PANEL_HEIGHT * self.lines + 26 + legend_height,
            margin={"l": 56, "r": 16, "t": legend_height, "b": 56},
            bargap=0.25,
            legend=legend,
        )
        figure.update_xaxes(**axis, tickangle=0)
        figure.update_xaxes(title_text=below, row=self.lines)
        figure.update_yaxes(**axis, rangemode="tozero")
        figure.update_yaxes(title_text=shown_unit(result.table), col=1)
        figure.update_annotations(font_size=12)
        return figure

    def _legend_lines(self) -> int:
        """Lines that the legend takes on a narrow page; at least one."""
        width = 0
        for trace in self.figure.data:
            if trace.name and trace.showlegend is not False:
                width += LETTER_WIDTH * len(trace.name) + LEGEND_KEY_WIDTH
        return max(1, ceil(width / NARROW_PAGE))


def wrap_labels(labels: Iterable[str]) -> list[str]:
    """The labels of an axis, long ones on several lines, so that none is turned."""
    return [_wrap(label) for label in labels]


def _wrap(label: str) -> str:
    if " / " in label:
        return label.replace(" / ", "<br>")
    if len(label) > LONG_LABEL:
        return "<br>".join(label.rsplit(" ", 1))
    return label
