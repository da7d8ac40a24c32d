"""Several values per line as dots on one axis, their mean as a bar: a still picture.

Knows no run, no table and no notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor

from speclib.errors import SpeclibError
from speclib.views.display import Still
from speclib.views.svg import COLOURS, INK, PAD, n, tag, words
from speclib.views.text import text_width

ROW, PLOT, STEP = 30, 560, 0.1  # pixels of a line, of the axis; between its ticks


class Dots(Still):
    """``rows``: name -> values. ``title`` stands under the axis and names unit and kind.

    Raises SpeclibError where there is nothing to draw."""

    def __init__(self, rows: Mapping[str, Sequence[float]], title: str):
        self.rows = {name: list(map(float, found)) for name, found in rows.items()}
        self.title = title
        if not self.rows or not all(self.rows.values()):
            raise SpeclibError("a line of dots has no values: give each at least one")
        self.left = PAD + max(map(text_width, self.rows)) + 16
        self.size = round(self.left + PLOT + 84), PAD + ROW * len(self.rows) + 62

    def drawing(self) -> str:
        every = [value for found in self.rows.values() for value in found]
        low, high = (
            round(f(e / STEP) * STEP, 9)
            for f, e in ((floor, min(every)), (ceil, max(every)))
        )
        ticks = round((high - low) / STEP) or 1
        end, drawn = PAD + ROW * len(self.rows), []
        for i in range(ticks + 1):
            x = self.left + PLOT * i / ticks
            drawn += [
                tag("line", x1=n(x), x2=n(x), y1=PAD, y2=end, stroke="#e3e3e3"),
                words(f"{low + i * STEP:.1f}", x, end + 20, text_anchor="middle"),
            ]
        for i, (name, found) in enumerate(self.rows.items()):
            y, mean = PAD + ROW * (i + 0.5), sum(found) / len(found)
            at = [self.left + PLOT * (v - low) / (ticks * STEP) for v in (*found, mean)]
            drawn.append(
                words(name, self.left - 12, y + 5, text_anchor="end", fill=INK)
            )
            drawn += [
                tag(
                    "circle",
                    cx=n(x),
                    cy=n(y),
                    r=5,
                    fill=COLOURS["score"],
                    fill_opacity=0.45,
                )
                for x in at[:-1]
            ]
            drawn += [
                tag(
                    "rect", x=n(at[-1] - 1.5), y=n(y - 11), width=3, height=22, fill=INK
                ),
                words(
                    f"{mean:.2f}",
                    self.left + PLOT + 16,
                    y + 5,
                    fill=INK,
                    font_weight="600",
                ),
            ]
        drawn += [
            words("mean", self.left + PLOT + 16, end + 20),
            words(
                self.title,
                self.left + PLOT / 2,
                end + 44,
                text_anchor="middle",
                fill=INK,
            ),
        ]
        return "".join(drawn)

    def __repr__(self) -> str:
        return "\n".join(
            [
                self.title,
                *(
                    f"  {name}: {min(found):.2f} to {max(found):.2f}, mean {sum(found) / len(found):.2f}"
                    for name, found in self.rows.items()
                ),
            ]
        )


def dots(rows: Mapping[str, Sequence[float]], title: str) -> Dots:
    """``rows`` (name -> values) as dots on one axis, with their mean; see Dots."""
    return Dots(rows, title)
