"""A few lines, each named at its end, as a static picture or with a slider.

This module uses no run, table or notebook.

::

      title
    3 |-----------------------
      |          ,--o           first name
    2 |------o--'--------------
      |  o--'    o--o           second name
    1 |-----------------------
         TP=1  TP=2  TP=4       categories, side by side
               below
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from math import ceil, floor, isfinite
from typing import Any, NamedTuple

from speclab.traces.acceptance import Acceptance, acceptance
from speclab.views.shapes import GRID, Still, centred, circle
from speclab.views.widgets.picture_with_sliders import PictureOfEachValue
from speclib.arguments import AnyNumber, checked
from speclib.drawing.svg import (
    INK,
    PAD,
    coordinate,
    horizontal_line,
    tag,
    text_at,
)
from speclib.drawing.text_in_pictures import text_width
from speclib.errors import BadValue

# Okabe and Ito's colours, which colour-blind readers can tell apart. Further lines
# repeat them with other dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#7a6a00")
DASHES = ("none", "9 5", "2 4", "9 4 2 4")  # pixels on, off ...; "none" is solid
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)
MOST_STEPS = 5  # on an axis, between the lowest and the highest value

# Pixels.
PLOT_LEFT, PLOT_TOP = 62, PAD + 34
PLOT_WIDTH, PLOT_HEIGHT = 560, 250
NAME_STEP = 17  # minimum distance between two names at the lines' ends


class Scale(NamedTuple):
    """The vertical axis: its ends, and the distance between its numbers."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> dict[float, str]:
        """The numbers at the axis, lowest first, and their labels."""
        steps = round((self.high - self.low) / self.step)
        numbers = [self.low + i * self.step for i in range(steps + 1)]
        decimals = ".10g" if self.step >= 1 else ".2f"
        return {number: f"{number:{decimals}}" for number in numbers}


class Curves(Still):
    """A line per name over a few categories side by side, with the name at its end.

    ``lines``: name -> {category: y}, or a pandas DataFrame with a column per line.
    Categories keep the order in which they first appear. ``below`` is their title, and
    ``title`` contains the unit and the kind of the values. The vertical axis begins at
    ``low``, or at the lowest value if that is lower.

    Values that are not finite are left out. Raises SpeclibError for no lines, or for a
    line without finite values.
    """

    @checked
    def __init__(
        self, lines: Any, title: str, below: str = "", low: AnyNumber | None = None
    ):
        values = {str(name): finite_values(line) for name, line in lines.items()}
        if not values or not all(values.values()):
            raise BadValue("a line of a chart has no values: give each at least one")
        self.lines = values
        self.title = title
        self.below = below
        categories = (x for line in values.values() for x in line)
        self.categories = list(dict.fromkeys(categories))
        heights = [y for line in values.values() for y in line.values()]
        self.up = scale_for(heights if low is None else [low, *heights])
        # The names to the right of the plot must not overlap.
        self.plot_height = max(PLOT_HEIGHT, NAME_STEP * len(values))
        widest_name = max(map(text_width, values))
        width = PLOT_LEFT + PLOT_WIDTH + 24 + widest_name + PAD
        self.size = (round(width), self.plot_height + 108)

    def x_of(self, category: Hashable) -> float:
        """The x of a category, in pixels."""
        number = self.categories.index(category)
        return PLOT_LEFT + PLOT_WIDTH * (number + 0.5) / len(self.categories)

    def y_of(self, value: float) -> float:
        """The y of a value, in pixels."""
        low, high, _ = self.up
        return PLOT_TOP + self.plot_height * (high - value) / (high - low)

    def drawing(self) -> str:
        elements = [
            text_at(self.title, PLOT_LEFT, PAD + 12, fill=INK, font_weight="600"),
            self._axes(),
        ]
        ends = {}
        for number, (name, line) in enumerate(self.lines.items()):
            elements.append(self._line(line, number))
            ends[name] = self.y_of([*line.values()][-1])
        left = PLOT_LEFT + PLOT_WIDTH + 8
        lowest = PLOT_TOP + self.plot_height
        for name, y in moved_apart(ends, lowest).items():
            colour = colour_of(list(self.lines).index(name))
            elements.append(text_at(name, left, y + 5, fill=colour, font_weight="600"))
        return "".join(elements)

    def _axes(self) -> str:
        """The numbers of both axes, and the horizontal axis's title."""
        right, bottom = PLOT_LEFT + PLOT_WIDTH, PLOT_TOP + self.plot_height
        elements = []
        for number, label in self.up.ticks.items():
            y = self.y_of(number)
            elements.append(horizontal_line(y, PLOT_LEFT, right, stroke=GRID))
            elements.append(text_at(label, PLOT_LEFT - 8, y + 5, text_anchor="end"))
        for category in self.categories:
            x = self.x_of(category)
            label = text_at(str(category), x, bottom + 20, text_anchor="middle")
            elements.append(label)
        middle = PLOT_LEFT + PLOT_WIDTH / 2
        below = centred(self.below, middle, bottom + 44)
        return "".join(elements) + below

    def _line(self, line: Mapping[Hashable, float], number: int) -> str:
        """A line with a dot at each value, and the value in the dot's tooltip."""
        colour = colour_of(number)
        corners, circles = [], []
        for category, value in line.items():
            x, y = self.x_of(category), self.y_of(value)
            corners.append(f"{coordinate(x)},{coordinate(y)}")
            tip = f"{category}: {value:.3g}"
            circles.append(circle(x, y, 4.5, tip=tip, fill=colour))
        polyline = tag(
            "polyline",
            cls="line",
            points=" ".join(corners),
            fill="none",
            stroke=colour,
            stroke_width=2.5,
            stroke_dasharray=DASHES[number // len(COLOURS) % len(DASHES)],
        )
        return polyline + "".join(circles)

    def __repr__(self) -> str:
        lines = [self.title]
        for name, line in self.lines.items():
            values = [f"{category}: {value:.3g}" for category, value in line.items()]
            lines.append(f"  {name}: {', '.join(values)}")
        return "\n".join(lines)


def finite_values(line: Mapping[Hashable, float]) -> dict[Hashable, float]:
    """The finite values of a line, by category."""
    try:
        return {category: float(y) for category, y in line.items() if isfinite(y)}
    except TypeError as error:
        raise BadValue(
            f"a line of a chart is {line!r}: give a number for each category"
        ) from error


def scale_for(values: Iterable[float]) -> Scale:
    """An axis with a few round numbers that covers all values."""
    values = list(values)
    lowest, highest = min(values), max(values)
    fitting = [s for s in STEPS if (highest - lowest) / s <= MOST_STEPS]
    step = fitting[0] if fitting else highest
    # Up to rounding errors, a multiple of the step counts as one.
    low = floor(lowest / step + 1e-9) * step
    high = ceil(highest / step - 1e-9) * step
    return Scale(low, max(high, low + step), step)


def colour_of(number: int) -> str:
    """The colour of line ``number``, counted from 0."""
    return COLOURS[number % len(COLOURS)]


def moved_apart(ends: Mapping[str, float], lowest: float) -> dict[str, float]:
    """The y of the names from top to bottom, moved down if they would overlap.

    A name that would end up below ``lowest`` is moved up, along with the names above.
    """
    moved: dict[str, float] = {}
    y = -float(NAME_STEP)
    for name in sorted(ends, key=lambda name: ends[name]):
        y = max(ends[name], y + NAME_STEP)
        moved[name] = y
    bottom = lowest
    for name in reversed(moved):
        moved[name] = min(moved[name], bottom)
        bottom = moved[name] - NAME_STEP
    return moved


# -- for lessons -----------------------------------------------------------------------
curves = Curves  # its name in lessons


@checked
def moving_curves(
    charts: Any,
    first: dict[str, Any],
    title: str,
    below: str = "",
    low: AnyNumber | None = None,
) -> PictureOfEachValue:
    """Curves under a slider: a chart with its own axis for each value.

    ``charts``: slider value -> lines as in ``curves``. ``first``: {slider name: first
    value}.
    """
    pictures = {}
    for value, lines in charts.items():
        pictures[value] = Curves(lines, title, below, low)
    return PictureOfEachValue(pictures, first)


@checked
def acceptance_by_place(runs: Mapping[str, Any]) -> Curves:
    """Draws the acceptance rate of the 1st, 2nd, ... draft in a window.

    ``runs``: name of a line -> a run, several runs, or an ``Acceptance``; see
    ``speclab.acceptance``. A position without tested drafts has no dot. Raises BadValue
    as ``speclab.acceptance`` does.
    """
    lines = {}
    for name, of_name in runs.items():
        counts = of_name if isinstance(of_name, Acceptance) else acceptance(of_name)
        lines[name] = dict(enumerate(counts.conditional, 1))
    title = "acceptance rate of a draft if all drafts before it in its window pass"
    return Curves(lines, title, "position in the window", 0.0)
