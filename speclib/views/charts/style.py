"""What all charts share: panels, colours, the look; backgrounds are transparent and ink is a grey
that reads on light and dark. Knows no form of chart."""

from __future__ import annotations

from math import ceil

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from speclib.views.tables.grid import shown_unit

COLOURS = {
    "paper": "#8b919c",
    "virtual": "#2f80d0",
    "emulated": "#1f9e77",
    "measured": "#d9722b",
}
PALETTE = ("#a6aab2", "#e0a33e", "#7aa6a1", "#c58fb5", "#8fb36b", "#5a56c9")
INK, LINE = "#7d838e", "rgba(128,132,142,0.25)"
ACROSS = 3  # small multiples per line
TALL = 250  # pixels of one
LETTER, KEY, NARROW = (
    7,
    46,
    700,
)  # pixels: a letter, a key's mark and gap, a narrow page


def panels(titles, across: int = ACROSS, shared: bool = False) -> go.Figure:
    wide = min(len(titles), across)
    tall = ceil(len(titles) / wide)
    figure = make_subplots(
        rows=tall,
        cols=wide,
        subplot_titles=list(titles),
        shared_yaxes="all" if shared else False,
        vertical_spacing=min(0.35 / tall, 0.22),
        horizontal_spacing=0.07,
    )
    figure._speclib_across = wide
    return figure


def labels(names) -> list[str]:
    """Long names on several lines, so that none is turned."""
    return [
        n.replace(" / ", "<br>")
        if " / " in n
        else "<br>".join(n.rsplit(" ", 1))
        if len(n) > 12
        else n
        for n in names
    ]


def add(figure, i: int, trace) -> None:
    figure.add_trace(
        trace, row=i // figure._speclib_across + 1, col=i % figure._speclib_across + 1
    )


def finish(
    figure: go.Figure, filled, panels: int, across: int = ACROSS, below: str = ""
) -> go.Figure:
    """The look, the unit on the outer axes, ``below`` under them; every chart ends here."""
    lines = ceil(panels / min(panels, across))
    top = 42 + 22 * _legend_lines(figure)
    axis = {
        "gridcolor": LINE,
        "zerolinecolor": LINE,
        "linecolor": LINE,
        "tickfont_size": 11,
    }
    figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 12, "family": "system-ui, sans-serif"},
        height=TALL * lines + 26 + top,
        margin={"l": 56, "r": 16, "t": top, "b": 56},
        bargap=0.25,
        legend={
            "orientation": "h",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "x": 0,
        },
    )
    figure.update_xaxes(**axis, tickangle=0)
    figure.update_xaxes(title_text=below, row=lines)
    figure.update_yaxes(**axis, rangemode="tozero")
    figure.update_yaxes(title_text=shown_unit(filled.table), col=1)
    figure.update_annotations(font_size=12)
    return figure


def _legend_lines(figure) -> int:
    """Lines that the legend takes on a narrow page, at least the one that every chart has."""
    names = [t.name for t in figure.data if t.name and t.showlegend is not False]
    return max(1, ceil(sum(LETTER * len(name) + KEY for name in names) / NARROW))
