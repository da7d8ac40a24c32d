"""A few lines over the same few values, each with its name at its end: a still picture.

Knows no run, no table and no notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, isfinite

from speclib.errors import SpeclibError
from speclib.views.display import Still
from speclib.views.svg import INK, PAD, n, tag, words
from speclib.views.text import text_width

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#7a6a00",
)  # Okabe and Ito's
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)
PLOT, TALL, LEFT, APART = 560, 250, 62, 17  # pixels; between names at the lines' ends


class Curves(Still):
    """``lines``: name -> {x: y}; what x is stands under the axis (``below``), ``title`` over it
    with unit and kind. The x are places side by side, in the order of their first appearance.
    ``low``: the axis begins there, or at what is lower. Raises SpeclibError where a line has no
    value, or none that is finite."""

    def __init__(
        self,
        lines: Mapping[str, Mapping],
        title: str,
        below: str = "",
        low: float | None = None,
    ):
        self.lines = {
            name: {x: float(y) for x, y in found.items() if isfinite(y)}
            for name, found in lines.items()
        }
        if not self.lines or not all(self.lines.values()):
            raise SpeclibError(
                "a line of a chart has no values: give each at least one"
            )
        self.title, self.below = title, below
        self.places = list(
            dict.fromkeys(x for found in self.lines.values() for x in found)
        )
        every = [y for found in self.lines.values() for y in found.values()]
        every += [] if low is None else [low]
        self.step = next(
            (s for s in STEPS if (max(every) - min(every)) / s <= 5), max(every)
        )
        self.low = floor(min(every) / self.step + 1e-9) * self.step
        self.high = max(
            ceil(max(every) / self.step - 1e-9) * self.step, self.low + self.step
        )
        self.size = (
            round(LEFT + PLOT + 24 + max(map(text_width, self.lines)) + PAD),
            TALL + 108,
        )

    def at(self, x, y: float) -> tuple[float, float]:
        """Pixels."""
        each = PLOT / len(self.places)
        return (
            LEFT + each * (self.places.index(x) + 0.5),
            PAD + 34 + TALL * (self.high - y) / (self.high - self.low),
        )

    def drawing(self) -> str:
        drawn = [words(self.title, LEFT, PAD + 12, fill=INK, font_weight="600")]
        for i in range(round((self.high - self.low) / self.step) + 1):
            value = self.low + i * self.step
            _, y = self.at(self.places[0], value)
            drawn += [
                tag(
                    "line", x1=LEFT, x2=LEFT + PLOT, y1=n(y), y2=n(y), stroke="#e3e3e3"
                ),
                words(
                    f"{value:.10g}" if self.step >= 1 else f"{value:.2f}",
                    LEFT - 8,
                    y + 5,
                    text_anchor="end",
                ),
            ]
        _, floor_ = self.at(self.places[0], self.low)
        for x in self.places:
            drawn.append(
                words(str(x), self.at(x, 0)[0], floor_ + 20, text_anchor="middle")
            )
        drawn.append(
            words(
                self.below, LEFT + PLOT / 2, floor_ + 44, text_anchor="middle", fill=INK
            )
        )
        return "".join(drawn) + self._drawn()

    def _drawn(self) -> str:
        """The lines, a dot and a number at each value, a name at each end."""
        drawn, taken = [], []
        for (name, found), colour in zip(self.lines.items(), COLOURS, strict=False):
            points = [self.at(x, y) for x, y in found.items()]
            way = " ".join(f"{n(x)},{n(y)}" for x, y in points)
            drawn.append(
                tag(
                    "polyline",
                    cls="line",
                    points=way,
                    fill="none",
                    stroke=colour,
                    stroke_width=2.5,
                )
            )
            drawn += [
                tag(
                    "circle",
                    tag("title", f"{x}: {y:.3g}"),
                    cx=n(px),
                    cy=n(py),
                    r=4.5,
                    fill=colour,
                )
                for (x, y), (px, py) in zip(found.items(), points, strict=True)
            ]
            taken.append([points[-1][1], name, colour])
        taken.sort(key=lambda end: end[0])
        for before, after in zip(taken, taken[1:], strict=False):
            after[0] = max(after[0], before[0] + APART)
        return "".join(drawn) + "".join(
            words(name, LEFT + PLOT + 8, y + 5, fill=colour, font_weight="600")
            for y, name, colour in taken
        )

    def __repr__(self) -> str:
        return "\n".join(
            [
                self.title,
                *(
                    f"  {name}: " + ", ".join(f"{x}: {y:.3g}" for x, y in found.items())
                    for name, found in self.lines.items()
                ),
            ]
        )


def curves(
    lines: Mapping[str, Mapping], title: str, below: str = "", low: float | None = None
) -> Curves:
    """``lines`` (name -> {x: y}) over the same values of x, which ``below`` names; see Curves."""
    return Curves(lines, title, below, low)
