"""The dot plot of a table: a row per pair or task, with all its numbers on one axis.

As text, for Markdown, and as a plotly figure::

    PEARL over plain decoding   1        2        3     printed  predicted  here    c
    CodeLlama 7&34B             |---x----+--○●--^-|       2.48   2.39 −4 %  1.47  2.7
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

import plotly.graph_objects as go

from .main_quantity import Point
from .written import write_number, write_percent

WIDTH = 86  # characters of the plot as text
LONGEST_LABEL = 32
MOST_STEPS = 6  # of the axis
SIGNS = {"ceiling": "^", "measured": "x", "virtual": "○", "paper": "●"}
NAMES = {
    "paper": "printed",
    "virtual": "predicted",
    "measured": "measured here",
    "ceiling": "c, the limit of its gain",
}
COLOURS = {
    "paper": "#8b919c",
    "virtual": "#2f80d0",
    "measured": "#d9722b",
    "ceiling": "#7d838e",
}
SYMBOLS = {
    "paper": "circle",
    "virtual": "circle-open",
    "measured": "x",
    "ceiling": "line-ns-open",
}
ROW_HEIGHT, AROUND_ROWS = 46, 130  # pixels


class DotPlot(NamedTuple):
    """A dot plot: the name of its quantity, its decimals and its points.

    ``is_main``: whether its points are one quantity rather than all cells of a table.
    """

    name: str
    decimals: int
    points: Sequence[Point]
    is_main: bool = True

    @property
    def kinds(self) -> list[str]:
        """The kinds of number in the plot, and "ceiling"."""
        shown = ["paper", "virtual", "measured", "ceiling"]
        return [kind for kind in shown if any(_values(kind, self.points))]

    def value(self, point: Point, kind: str) -> float | None:
        return point.ceiling if kind == "ceiling" else point.numbers.get(kind)


def _values(kind: str, points: Sequence[Point]) -> list[float]:
    values = []
    for point in points:
        value = point.ceiling if kind == "ceiling" else point.numbers.get(kind)
        if value is not None and isfinite(value):
            values.append(value)
    return values


class Axis(NamedTuple):
    """An axis from ``low`` to ``high`` in round steps."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + self.step * number for number in range(count + 1)]


def axis_for(values: Sequence[float]) -> Axis:
    """An axis that covers all values in a few round steps."""
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** floor(log10(span / MOST_STEPS))
    steps = [power * size for size in (1, 2, 5, 10, 20)]
    step = next(step for step in steps if span / step <= MOST_STEPS)
    return Axis(floor(low / step) * step, (floor(high / step) + 1) * step, step)


# -- as text ---------------------------------------------------------------------------
def as_text(plot: DotPlot) -> str:
    """The plot in lines of at most ``WIDTH`` characters."""
    numbers = _columns_of_numbers(plot)
    widths = [max(map(len, column)) for column in numbers]
    labels = [plot.name, *(point.label for point in plot.points)]
    left = min(max(map(len, labels)), LONGEST_LABEL)
    right = sum(widths) + 2 * len(widths)
    room = WIDTH - left - right - 3
    axis = axis_for([v for kind in plot.kinds for v in _values(kind, plot.points)])
    scale = _scale_line(axis, room)

    lines = []
    for number, label in enumerate(labels):
        drawn = scale
        if number:
            drawn = _row(plot, plot.points[number - 1], axis, room)
        cells = [
            column[number].rjust(width)
            for column, width in zip(numbers, widths, strict=True)
        ]
        lines.append("  ".join([_shorten(label, left), drawn, *cells]).rstrip())
    legend = [f"{SIGNS[kind]} {NAMES[kind]}" for kind in plot.kinds]
    lines.append("   ".join(legend))
    return "\n".join(lines)


def _shorten(label: str, length: int) -> str:
    """The label in exactly ``length`` characters; it loses its middle if too long."""
    if len(label) <= length:
        return label.ljust(length)
    end = length // 3
    return f"{label[: length - end - 1]}…{label[-end:]}"


def _columns_of_numbers(plot: DotPlot) -> list[list[str]]:
    """The numbers to the right of the axis, each column with its heading."""
    columns = []
    heads = {"paper": "printed", "virtual": "predicted", "measured": "here"}
    for kind in plot.kinds:
        column = [heads.get(kind, "c")]
        for point in plot.points:
            value = plot.value(point, kind)
            decimals = 1 if kind == "ceiling" else plot.decimals
            text = "" if value is None else write_number(value, decimals)
            if kind == "virtual" and text:
                error = point.error
                known = "" if error is None else write_percent(error)
                text += f" {'*' if point.is_calibrated else known:>6}"
            column.append(text)
        columns.append(column)
    return columns


def _place(value: float, axis: Axis, room: int) -> int:
    return round((room - 1) * (value - axis.low) / (axis.high - axis.low))


def _scale_line(axis: Axis, room: int) -> str:
    """The axis's numbers, each above its tick; those that would touch are omitted."""
    line = [" "] * room
    decimals = max(0, ceil(-log10(axis.step) - 1e-9))
    for tick in axis.ticks:
        text = write_number(tick, decimals)
        start = min(_place(tick, axis, room), room - len(text))
        if "".join(line[max(0, start - 1) : start]).strip() == "":
            line[start : start + len(text)] = text
    return "".join(line)


def _row(plot: DotPlot, point: Point, axis: Axis, room: int) -> str:
    """The axis with a sign per number; the printed number covers the others."""
    line = ["-"] * room
    for tick in axis.ticks:
        line[_place(tick, axis, room)] = "+"
    line[0], line[-1] = "|", "|"
    for kind in reversed(plot.kinds):
        value = plot.value(point, kind)
        if value is not None and isfinite(value):
            line[_place(value, axis, room)] = SIGNS[kind]
    both = [point.numbers.get(kind) for kind in ("paper", "virtual")]
    if None not in both:
        first, second = (_place(float(value or 0), axis, room) for value in both)
        if first == second:
            line[first] = "◉"
    return "".join(line)


# -- as a figure -----------------------------------------------------------------------
def as_figure(plot: DotPlot) -> go.Figure:
    """The plot, as wide as its column, with the numbers below each name."""
    figure = go.Figure()
    names = [_name(plot, point) for point in plot.points]
    for kind in reversed(plot.kinds):
        values = [plot.value(point, kind) for point in plot.points]
        figure.add_trace(
            go.Scatter(
                x=values,
                y=names,
                name=NAMES[kind],
                mode="markers",
                marker={
                    "symbol": SYMBOLS[kind],
                    "size": 11,
                    "color": COLOURS[kind],
                    "line": {"width": 2, "color": COLOURS[kind]},
                },
                error_x=_intervals(plot) if kind == "measured" else None,
                hovertemplate=f"{NAMES[kind]}: %{{x:.3g}}<extra></extra>",
            )
        )
    line = "rgba(128,132,142,0.25)"
    figure.update_xaxes(gridcolor=line, zeroline=False)
    below = {"x": 1, "y": 0, "xanchor": "right", "yshift": -44}  # the axis, at its end
    where = {"xref": "paper", "yref": "paper", "showarrow": False}
    figure.add_annotation(text=plot.name, **below, **where)
    figure.update_yaxes(gridcolor=line, autorange="reversed", automargin=True)
    return figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#7d838e", "size": 13, "family": "system-ui, sans-serif"},
        height=ROW_HEIGHT * len(names) + AROUND_ROWS,
        margin={"l": 8, "r": 12, "t": 36, "b": 48},
        legend={
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "reversed",
        },
    )


def _name(plot: DotPlot, point: Point) -> str:
    """A point's name, and below it the printed and the predicted number."""
    texts = []
    for kind in ("paper", "virtual"):
        if kind in point.numbers:
            text = write_number(point.numbers[kind], plot.decimals)
            texts.append(f"{NAMES[kind]} {text}")
    if point.error is not None:
        texts[-1] += f" ({write_percent(point.error)})"
    numbers = ", ".join(texts)
    label = _shorten(point.label, LONGEST_LABEL).strip()
    return f'{label}<br><span style="font-size:11px">{numbers}</span>'


def _intervals(plot: DotPlot) -> dict[str, object]:
    """How far the 95 % intervals of measured numbers extend to either side."""
    above, below = [], []
    for point in plot.points:
        value = point.numbers.get("measured", 0.0)
        low, high = point.interval or (value, value)
        above.append(high - value)
        below.append(value - low)
    return {"array": above, "arrayminus": below, "thickness": 1.2, "width": 3}
