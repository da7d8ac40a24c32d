"""Several values per row as dots on one axis, with their mean as a bar: a still
picture.

Knows no run, no table and no notebook.

::

    first row  |    o  o |o  o    |      1.52
    second row |         |   o o | o     1.81
              1.0       1.5      2.0     mean
                       title
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from speclab.views.shapes import GRID, circle
from speclib.arguments import AnyNumbers, checked
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    rectangle,
    text_at,
    vertical_line,
)
from speclib.drawing.text_in_pictures import text_width
from speclib.errors import BadValue

from .still import Still

TICK_STEP = 0.1  # between the axis's numbers

# Pixels.
ROW_HEIGHT = 30
PLOT_WIDTH = 560


class Dots(Still):
    """A row per name, with a dot per value.

    ``rows``: name -> values. ``title`` stands under the axis and names unit and kind.
    Raises SpeclibError where there is nothing to show.
    """

    @checked
    def __init__(self, rows: Mapping[str, AnyNumbers], title: str):
        self.rows = {name: list(map(float, values)) for name, values in rows.items()}
        self.title = title
        if not self.rows or not all(self.rows.values()):
            raise BadValue("a line of dots has no values: give each at least one")

        lowest = min(min(values) for values in self.rows.values())
        highest = max(max(values) for values in self.rows.values())
        self.low = round(floor(lowest / TICK_STEP) * TICK_STEP, 9)
        high = round(ceil(highest / TICK_STEP) * TICK_STEP, 9)
        self.ticks = round((high - self.low) / TICK_STEP) or 1

        self.left = PAD + max(text_width(name) for name in self.rows) + 16
        self.bottom = PAD + ROW_HEIGHT * len(self.rows)
        self.means_left = self.left + PLOT_WIDTH + 16
        self.size = (round(self.left + PLOT_WIDTH + 84), self.bottom + 62)

    def drawing(self) -> str:
        elements = [self.grid()]
        for index, (name, values) in enumerate(self.rows.items()):
            y = PAD + ROW_HEIGHT * (index + 0.5)
            elements.append(self.row(name, values, y))

        mean = text_at("mean", self.means_left, self.bottom + 20)
        title = text_at(
            self.title,
            self.left + PLOT_WIDTH / 2,
            self.bottom + 44,
            text_anchor="middle",
            fill=INK,
        )
        return "".join(elements) + mean + title

    def grid(self) -> str:
        """The axis's numbers, each with a line through all rows."""
        elements = []
        for tick in range(self.ticks + 1):
            x = self.left + PLOT_WIDTH * tick / self.ticks
            label = f"{self.low + tick * TICK_STEP:.1f}"
            elements.append(vertical_line(x, PAD, self.bottom, stroke=GRID))
            elements.append(text_at(label, x, self.bottom + 20, text_anchor="middle"))
        return "".join(elements)

    def row(self, name: str, values: list[float], y: float) -> str:
        """A row's name, its dots, and its mean as a bar and as a number."""
        elements = [text_at(name, self.left - 12, y + 5, text_anchor="end", fill=INK)]
        for value in values:
            dot = circle(
                self.x_of(value), y, 5, fill=KIND_COLOURS["score"], fill_opacity=0.45
            )
            elements.append(dot)

        mean = sum(values) / len(values)
        bar = rectangle(self.x_of(mean) - 1.5, y - 11, 3, 22, fill=INK)
        number = text_at(
            f"{mean:.2f}", self.means_left, y + 5, fill=INK, font_weight="600"
        )
        return "".join(elements) + bar + number

    def x_of(self, value: float) -> float:
        """Pixels of a value."""
        return self.left + PLOT_WIDTH * (value - self.low) / (self.ticks * TICK_STEP)

    def __repr__(self) -> str:
        lines = [self.title]
        for name, values in self.rows.items():
            mean = sum(values) / len(values)
            lines.append(
                f"  {name}: {min(values):.2f} to {max(values):.2f}, mean {mean:.2f}"
            )
        return "\n".join(lines)


@checked
def dots(rows: Mapping[str, AnyNumbers], title: str) -> Dots:
    """Rows (name -> values) as dots on one axis, with their mean; see ``Dots``."""
    return Dots(rows, title)
