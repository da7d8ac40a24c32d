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
from statistics import fmean

from speclab.views.shapes import GRID, Still, centred, circle
from speclab.views.some_numbers import AnyNumbers
from speclib.arguments import checked
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

ROW_HEIGHT, PLOT_WIDTH = 30, 560  # pixels


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
        every_value = [value for values in self.rows.values() for value in values]
        self.first_tenth = floor(min(every_value) * 10)
        self.tenths = (ceil(max(every_value) * 10) - self.first_tenth) or 1
        self.left = PAD + max(map(text_width, self.rows)) + 16
        self.bottom = PAD + ROW_HEIGHT * len(self.rows)
        self.size = (round(self.left + PLOT_WIDTH + 84), self.bottom + 62)

    def x_of(self, value: float) -> float:
        """Pixels of a value."""
        return self.left + PLOT_WIDTH * (10 * value - self.first_tenth) / self.tenths

    def drawing(self) -> str:
        elements = []
        for tenth in range(self.first_tenth, self.first_tenth + self.tenths + 1):
            x = self.x_of(tenth / 10)
            elements += [
                vertical_line(x, PAD, self.bottom, stroke=GRID),
                text_at(f"{tenth / 10:.1f}", x, self.bottom + 20, text_anchor="middle"),
            ]
        for index, (name, values) in enumerate(self.rows.items()):
            y = PAD + ROW_HEIGHT * (index + 0.5)
            elements.append(self._row(name, values, y))
        middle, right = self.left + PLOT_WIDTH / 2, self.left + PLOT_WIDTH + 16
        return (
            "".join(elements)
            + text_at("mean", right, self.bottom + 20)
            + centred(self.title, middle, self.bottom + 44)
        )

    def _row(self, name: str, values: list[float], y: float) -> str:
        """One row's name, its dots, and its mean as a bar and as a number."""
        elements = [text_at(name, self.left - 12, y + 5, text_anchor="end", fill=INK)]
        for value in values:
            x, fill = self.x_of(value), KIND_COLOURS["score"]
            elements.append(circle(x, y, 5, fill=fill, fill_opacity=0.45))
        mean, right = fmean(values), self.left + PLOT_WIDTH + 16
        bar = rectangle(self.x_of(mean) - 1.5, y - 11, 3, 22, fill=INK)
        number = text_at(f"{mean:.2f}", right, y + 5, fill=INK, font_weight="600")
        return "".join(elements) + bar + number

    def __repr__(self) -> str:
        lines = [self.title]
        for name, values in self.rows.items():
            low, high = min(values), max(values)
            lines.append(f"  {name}: {low:.2f} to {high:.2f}, mean {fmean(values):.2f}")
        return "\n".join(lines)


dots = Dots  # as lessons call it
