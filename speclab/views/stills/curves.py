"""A few lines over the same few values, each with its name at its end: a still picture.

Knows no run, no table and no notebook.

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
from numbers import Real
from typing import Any, NamedTuple

from speclab.views.shapes import GRID, circle
from speclib.arguments import AnyNumber, checked
from speclib.drawing.svg import INK, PAD, coordinate, horizontal_line, tag, text_at
from speclib.drawing.text_in_pictures import text_width
from speclib.errors import BadValue

from .still import Still

# Okabe and Ito's colours, which colour-blind readers can tell apart. When all of them
# are taken, further lines take them again with the next dashes.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#7a6a00",
)
DASHES = ("none", "9 5", "2 4", "9 4 2 4")  # pixels on and off; "none" is a whole line
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)
MOST_STEPS = 5  # of the axis, between the lowest value and the highest

# Pixels.
PLOT_LEFT = 62
PLOT_TOP = PAD + 34
PLOT_WIDTH = 560
PLOT_HEIGHT = 250
NAME_STEP = 17  # between two names at the lines' ends, at least
SAMPLE = 34  # before a name, of its line and the gap after it


class Scale(NamedTuple):
    """The vertical axis: where it begins and ends, and how far apart its numbers
    are."""

    low: float
    high: float
    step: float

    @property
    def numbers(self) -> list[float]:
        """The numbers at the axis, lowest first."""
        steps = round((self.high - self.low) / self.step)
        return [self.low + i * self.step for i in range(steps + 1)]

    def label(self, number: float) -> str:
        """A number as it stands at the axis."""
        if self.step >= 1:
            return f"{number:.10g}"
        return f"{number:.2f}"


class LineStyle(NamedTuple):
    """How a line is drawn."""

    colour: str
    dashes: str


class Dot(NamedTuple):
    """A value on a line, in pixels; ``tip`` tells it under the pointer."""

    x: float
    y: float
    tip: str


class LineEnd(NamedTuple):
    """The name at the end of a line; ``y`` in pixels."""

    y: float
    name: str
    style: LineStyle


class Curves(Still):
    """A line per name, with a dot at each value.

    ``lines``: name -> {x: y}, or a pandas DataFrame with a column per line. The x are
    categories side by side, in the order in which they first appear; ``below`` says
    what they are. ``title`` names unit and kind of the values. ``low``: the axis begins
    there, or at the lowest value if that is lower.

    A value that is not finite is left out. Raises SpeclibError where a line has no
    other values, or none at all.
    """

    @checked
    def __init__(
        self,
        lines: Any,
        title: str,
        below: str = "",
        low: AnyNumber | None = None,
    ):
        self.lines = {name: finite_values(line) for name, line in lines_of(lines)}
        if not self.lines or not all(self.lines.values()):
            raise BadValue("a line of a chart has no values: give each at least one")
        self.title = title
        self.below = below
        self.categories = categories_of(self.lines)
        self.scale = scale_for(self.lines, low)

        # Each line's name needs pixels of its own beside the plot.
        self.plot_height = max(PLOT_HEIGHT, NAME_STEP * len(self.lines))
        # Where lines share a colour, a sample of each stands before its name.
        self.sample_width = SAMPLE if len(self.lines) > len(COLOURS) else 0
        widest_name = max(text_width(name) for name in self.lines) + self.sample_width
        width = PLOT_LEFT + PLOT_WIDTH + 24 + widest_name + PAD
        self.size = (round(width), self.plot_height + 108)

    def x_of(self, category: Hashable) -> float:
        """Pixels of the middle of a category."""
        category_width = PLOT_WIDTH / len(self.categories)
        return PLOT_LEFT + category_width * (self.categories.index(category) + 0.5)

    def y_of(self, value: float) -> float:
        """Pixels of a value."""
        scale = self.scale
        from_top = self.plot_height * (scale.high - value) / (scale.high - scale.low)
        return PLOT_TOP + from_top

    def drawing(self) -> str:
        title = text_at(self.title, PLOT_LEFT, PAD + 12, fill=INK, font_weight="600")
        return title + self.vertical_axis() + self.horizontal_axis() + self.all_lines()

    def vertical_axis(self) -> str:
        """The scale's numbers, each with a line through the plot."""
        elements = []
        for number in self.scale.numbers:
            y = self.y_of(number)
            line = horizontal_line(y, PLOT_LEFT, PLOT_LEFT + PLOT_WIDTH, stroke=GRID)
            label = text_at(
                self.scale.label(number), PLOT_LEFT - 8, y + 5, text_anchor="end"
            )
            elements += [line, label]
        return "".join(elements)

    def horizontal_axis(self) -> str:
        """The categories, and what they are."""
        bottom = self.y_of(self.scale.low)
        elements = []
        for category in self.categories:
            x = self.x_of(category)
            elements.append(
                text_at(str(category), x, bottom + 20, text_anchor="middle")
            )

        middle = PLOT_LEFT + PLOT_WIDTH / 2
        elements.append(
            text_at(self.below, middle, bottom + 44, text_anchor="middle", fill=INK)
        )
        return "".join(elements)

    def all_lines(self) -> str:
        """The lines, and the name of each at its end."""
        elements = []
        ends = []
        for number, (name, line) in enumerate(self.lines.items()):
            style = style_of(number)
            elements.append(self.line(line, style))
            last_value = list(line.values())[-1]
            ends.append(LineEnd(self.y_of(last_value), name, style))

        for end in moved_apart(ends, lowest=PLOT_TOP + self.plot_height):
            elements.append(self.name_at(end))
        return "".join(elements)

    def name_at(self, end: LineEnd) -> str:
        """A line's name, after a sample of the line where its colour is not enough."""
        left = PLOT_LEFT + PLOT_WIDTH + 8
        name = text_at(
            end.name,
            left + self.sample_width,
            end.y + 5,
            fill=end.style.colour,
            font_weight="600",
        )
        if not self.sample_width:
            return name
        sample = horizontal_line(
            end.y,
            left,
            left + self.sample_width - 6,
            stroke=end.style.colour,
            stroke_width=2.5,
            stroke_dasharray=end.style.dashes,
        )
        return sample + name

    def line(self, line: dict[Hashable, float], style: LineStyle) -> str:
        """One line, with a dot at each value that tells it under the pointer."""
        dots = []
        for category, value in line.items():
            tip = f"{category}: {value:.3g}"
            dots.append(Dot(self.x_of(category), self.y_of(value), tip))
        return line_through(dots, style)

    def __repr__(self) -> str:
        lines = [self.title]
        for name, line in self.lines.items():
            values = [f"{category}: {value:.3g}" for category, value in line.items()]
            lines.append(f"  {name}: {', '.join(values)}")
        return "\n".join(lines)


def finite_values(line: Mapping[Hashable, float]) -> dict[Hashable, float]:
    """The categories of a line that have a value."""
    return {
        category: float(value) for category, value in line.items() if isfinite(value)
    }


def categories_of(lines: dict[str, dict[Hashable, float]]) -> list[Hashable]:
    """All categories of all lines, in the order in which they first appear."""
    categories: dict[Hashable, None] = {}  # a dict keeps the order
    for line in lines.values():
        categories.update(dict.fromkeys(line))
    return list(categories)


def scale_for(lines: dict[str, dict[Hashable, float]], low: float | None) -> Scale:
    """An axis with few round numbers that covers all values, and ``low``."""
    values = [] if low is None else [low]
    for line in lines.values():
        values += line.values()
    lowest = min(values)
    highest = max(values)

    step = step_for(lowest, highest)
    # A value that is a multiple of the step but for rounding errors counts as one.
    low_end = floor(lowest / step + 1e-9) * step
    high_end = ceil(highest / step - 1e-9) * step
    return Scale(low_end, max(high_end, low_end + step), step)


def step_for(lowest: float, highest: float) -> float:
    """The smallest round step of which at most ``MOST_STEPS`` are needed."""
    for step in STEPS:
        if (highest - lowest) / step <= MOST_STEPS:
            return step
    return highest


def style_of(number: int) -> LineStyle:
    """How the line with this number is drawn, counted from 0."""
    colour = COLOURS[number % len(COLOURS)]
    dashes = DASHES[number // len(COLOURS) % len(DASHES)]
    return LineStyle(colour, dashes)


def line_through(dots: Iterable[Dot], style: LineStyle) -> str:
    """A line from dot to dot, and the dots on it."""
    corners = []
    circles = []
    for dot in dots:
        corners.append(f"{coordinate(dot.x)},{coordinate(dot.y)}")
        circles.append(circle(dot.x, dot.y, 4.5, tip=dot.tip, fill=style.colour))
    polyline = tag(
        "polyline",
        cls="line",
        points=" ".join(corners),
        fill="none",
        stroke=style.colour,
        stroke_width=2.5,
        stroke_dasharray=style.dashes,
    )
    return polyline + "".join(circles)


def moved_apart(ends: list[LineEnd], lowest: float) -> list[LineEnd]:
    """The names from top to bottom, moved down where they would overlap.

    Where that would move one below ``lowest``, it and those above it are moved up.
    """
    moved: list[LineEnd] = []
    for end in sorted(ends, key=lambda end: end.y):
        y = end.y
        if moved:
            y = max(y, moved[-1].y + NAME_STEP)
        moved.append(end._replace(y=y))

    bottom = lowest
    for number in reversed(range(len(moved))):
        y = min(moved[number].y, bottom)
        moved[number] = moved[number]._replace(y=y)
        bottom = y - NAME_STEP
    return moved


def lines_of(
    lines: Mapping[str, Mapping[Hashable, float]],
) -> list[tuple[str, Mapping[Hashable, float]]]:
    """(name, {x: y}) of each line.

    A DataFrame and its columns have ``items()`` like a Mapping, and nothing else is
    asked of them. Raises BadValue for anything without it.
    """
    if not hasattr(lines, "items"):
        raise BadValue(f"lines is {lines!r}: give name -> {{x: y}}, or a DataFrame")
    named_lines = list(lines.items())
    for name, line in named_lines:
        if not hasattr(line, "items"):
            raise BadValue(f"line {name!r} is {line!r}: give its values as {{x: y}}")
        for x, y in line.items():
            if isinstance(y, bool) or not isinstance(y, Real):
                raise BadValue(f"line {name!r} is {y!r} at {x!r}: give a number")
    return [(str(name), line) for name, line in named_lines]


@checked
def curves(
    lines: Any,
    title: str,
    below: str = "",
    low: AnyNumber | None = None,
) -> Curves:
    """Lines (name -> {x: y}) over the same values of x, which ``below`` names.

    See ``Curves``.
    """
    return Curves(lines, title, below, low)
