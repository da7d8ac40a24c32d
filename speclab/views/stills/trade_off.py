"""Throughput against the speed of a request: a line per method, a dot per batch.

Knows no run, no table and no notebook.

::

      title
    400 |      o 64
        |       `o 32                first name
    100 |    o     `o 8
        |     `o     `-o 1           second name
        +-----------------------
         10      20      30          tokens per second of a request
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from speclab.views.shapes import GRID, circle
from speclib.arguments import Number, checked, shown
from speclib.drawing.svg import INK, PAD, horizontal_line, text_at, vertical_line
from speclib.drawing.text_in_pictures import text_width
from speclib.errors import BadValue

from .curves import (
    PLOT_LEFT,
    PLOT_TOP,
    PLOT_WIDTH,
    Dot,
    LineEnd,
    LineStyle,
    line_through,
    moved_apart,
    scale_for,
    style_of,
)
from .still import Still

# Pixels.
PLOT_HEIGHT = 300
RING = 9  # around a dot of the batch that is looked at

AHEAD = INK  # of the ring around the highest throughput of that batch: no line is black
BEHIND = "#8a8a8a"


class Point(NamedTuple):
    """Tokens per second: of one request, and of all together."""

    speed: float
    throughput: float


def point_of(values: Any) -> Point:
    """Two numbers above 0 as a point; raises BadValue for anything else."""
    allowed = Number(above=0)
    is_pair = isinstance(values, tuple | list) and len(values) == 2
    if not is_pair or not all(allowed.allows(value) for value in values):
        raise BadValue(
            f"a point is {shown(values)}: give (tokens per second of a request, of all)"
        )
    return Point(*values)


class TradeOff(Still):
    """A line per name through the points of its batches.

    ``lines``: name -> {batch: (speed, throughput)}. ``title`` names unit and kind.
    ``batch``: around its dots are rings, of which that of the highest throughput is
    black. Raises BadValue where a line has no point or lacks the batch.
    """

    @checked
    def __init__(self, lines: Mapping[str, Any], title: str, batch: int):
        self.lines = {}
        for name, points in lines.items():
            self.lines[name] = {size: point_of(point) for size, point in points.items()}
            if batch not in self.lines[name]:
                raise BadValue(
                    f"line {name!r} has no point of batch {batch}: it has "
                    f"{', '.join(map(str, points)) or 'none'}"
                )
        if not self.lines:
            raise BadValue("there are no lines: give at least one")
        self.title = title
        self.batch = batch
        self.across = scale_for(self._values("speed"), 0.0)
        self.up = scale_for(self._values("throughput"), 0.0)
        widest_name = max(text_width(name) for name in self.lines)
        width = PLOT_LEFT + PLOT_WIDTH + 24 + widest_name + PAD
        self.size = (round(width), PLOT_HEIGHT + 108)

    def _values(self, of: str) -> dict[str, dict[Any, float]]:
        return {
            name: {size: getattr(point, of) for size, point in points.items()}
            for name, points in self.lines.items()
        }

    @property
    def winner(self) -> str:
        """Who has the highest throughput at the batch that is looked at."""
        return max(self.lines, key=lambda name: self.lines[name][self.batch].throughput)

    def x_of(self, speed: float) -> float:
        """Pixels of a request's speed."""
        return PLOT_LEFT + PLOT_WIDTH * speed / self.across.high

    def y_of(self, throughput: float) -> float:
        """Pixels of a throughput."""
        return PLOT_TOP + PLOT_HEIGHT * (1 - throughput / self.up.high)

    def drawing(self) -> str:
        title = text_at(self.title, PLOT_LEFT, PAD + 12, fill=INK, font_weight="600")
        return title + self._axes() + self._all_lines() + self._rings()

    def _axes(self) -> str:
        bottom = PLOT_TOP + PLOT_HEIGHT
        elements = []
        for number in self.up.numbers:
            y = self.y_of(number)
            elements += [
                horizontal_line(y, PLOT_LEFT, PLOT_LEFT + PLOT_WIDTH, stroke=GRID),
                text_at(self.up.label(number), PLOT_LEFT - 8, y + 5, text_anchor="end"),
            ]
        for number in self.across.numbers:
            x = self.x_of(number)
            label = self.across.label(number)
            elements += [
                vertical_line(x, PLOT_TOP, bottom, stroke=GRID),
                text_at(label, x, bottom + 20, text_anchor="middle"),
            ]
        below = (
            "tokens per second of a request; "
            f"rings: batch {self.batch}, the black one: {self.winner}"
        )
        middle = PLOT_LEFT + PLOT_WIDTH / 2
        elements.append(
            text_at(below, middle, bottom + 44, text_anchor="middle", fill=INK)
        )
        return "".join(elements)

    def _all_lines(self) -> str:
        elements = []
        ends = []
        for number, (name, points) in enumerate(self.lines.items()):
            style = style_of(number)
            elements.append(self._line(name, points, style))
            last = list(points.values())[-1]
            ends.append(LineEnd(self.y_of(last.throughput), name, style))
        for end in moved_apart(ends, lowest=PLOT_TOP + PLOT_HEIGHT):
            elements.append(
                text_at(
                    end.name,
                    PLOT_LEFT + PLOT_WIDTH + 8,
                    end.y + 5,
                    fill=end.style.colour,
                    font_weight="600",
                )
            )
        return "".join(elements)

    def _line(self, name: str, points: dict[int, Point], style: LineStyle) -> str:
        dots = []
        for size, point in points.items():
            x, y = self.x_of(point.speed), self.y_of(point.throughput)
            tip = (
                f"{name}, batch {size}: {point.speed:.3g} a request, "
                f"{point.throughput:.3g} in all"
            )
            dots.append(Dot(x, y, tip))
        return line_through(dots, style)

    def _rings(self) -> str:
        rings = []
        winner_last = sorted(self.lines, key=lambda name: name == self.winner)
        for name in winner_last:
            point = self.lines[name][self.batch]
            rings.append(
                circle(
                    self.x_of(point.speed),
                    self.y_of(point.throughput),
                    RING,
                    fill="none",
                    stroke=AHEAD if name == self.winner else BEHIND,
                    stroke_width=3.0,
                )
            )
        return "".join(rings)

    def __repr__(self) -> str:
        lines = [self.title]
        for name, points in self.lines.items():
            values = [
                f"{size}: {point.speed:.3g}, {point.throughput:.3g}"
                for size, point in points.items()
            ]
            lines.append(f"  {name}: {'; '.join(values)}")
        lines.append(f"  the highest throughput at batch {self.batch}: {self.winner}")
        return "\n".join(lines)
