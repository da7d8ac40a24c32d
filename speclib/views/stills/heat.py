"""Panels of numbers as colours, on one scale that ends at the highest: a still picture.

Knows no network, no run and no notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor

from speclib.errors import SpeclibError
from speclib.views.display import Still
from speclib.views.svg import INK, PAD, n, tag, words
from speclib.views.text import text_width

WIDE, CELL, TALL, HEAD, BETWEEN = (
    1100,
    42,
    24,
    46,
    30,
)  # pixels; of a cell, over a panel
DEEP, PALE = (0x1F, 0x4F, 0x8F), (0xFF, 0xFF, 0xFF)


def shade(share: float) -> str:
    """0: deep, 1: white. What differs most stands out."""
    return "#" + "".join(
        f"{round(a + (b - a) * min(max(share, 0), 1)):02x}"
        for a, b in zip(DEEP, PALE, strict=True)
    )


class Heat(Still):
    """``panels``: name -> {row: values}, all of one length; columns are counted from 0 and
    ``across`` says what they are. ``splits``: name -> columns before which a line stands. ``title``
    says what the numbers are, and their kind. Raises SpeclibError where lengths differ."""

    def __init__(
        self,
        panels: Mapping[str, Mapping[str, Sequence[float]]],
        title: str,
        across: str = "",
        splits: Mapping[str, Sequence[int]] | None = None,
    ):
        self.panels, self.title, self.across = dict(panels), title, across
        self.splits = splits or {}
        lengths = {len(v) for rows in self.panels.values() for v in rows.values()}
        if len(lengths) != 1:
            raise SpeclibError(
                f"rows of a heat map have {sorted(lengths)} values: give all the "
                "same number"
            )
        (self.count,) = lengths
        every = [v for rows in self.panels.values() for v in map(min, rows.values())]
        self.low = min(floor(min(every) * 10) / 10, 0.9)
        self.rows = list(next(iter(self.panels.values())))
        self.left = max(map(text_width, self.rows)) + 12
        self.wide = self.left + self.count * CELL
        self.beside = max(1, int((WIDE - 2 * PAD + BETWEEN) // (self.wide + BETWEEN)))
        lines = -(-len(self.panels) // self.beside)
        self.tall = HEAD + len(self.rows) * TALL
        side = min(self.beside, len(self.panels))
        self.size = (
            round(2 * PAD + side * self.wide + (side - 1) * BETWEEN),
            round(PAD + 28 + lines * (self.tall + 18) + PAD),
        )

    def drawing(self) -> str:
        drawn = [
            words(self.title, PAD, PAD + 14, fill=INK, font_size=17, font_weight="600")
        ]
        for i, (name, rows) in enumerate(self.panels.items()):
            x = PAD + i % self.beside * (self.wide + BETWEEN)
            y = PAD + 28 + i // self.beside * (self.tall + 18)
            drawn.append(self.panel(name, rows, x, y))
        return "".join(drawn)

    def panel(
        self, name: str, rows: Mapping[str, Sequence[float]], x: float, y: float
    ) -> str:
        """Its name, its columns' numbers, its cells and, over them, where it is split."""
        start, top = x + self.left, y + HEAD
        drawn = [
            words(name, start, y + 18, fill=INK, font_weight="600"),
            words(self.across, start - 8, top - 7, text_anchor="end", font_size=13),
        ]
        drawn += [
            words(
                str(i),
                start + (i + 0.5) * CELL,
                top - 7,
                text_anchor="middle",
                font_size=13,
            )
            for i in range(self.count)
        ]
        for j, (row, values) in enumerate(rows.items()):
            drawn.append(
                words(row, start - 8, top + j * TALL + 17, text_anchor="end", fill=INK)
            )
            drawn += [
                self.cell(v, start + i * CELL, top + j * TALL)
                for i, v in enumerate(values)
            ]
        ends = top + len(rows) * TALL
        drawn += [
            tag(
                "line",
                cls="split",
                x1=n(start + at * CELL),
                x2=n(start + at * CELL),
                y1=n(top - 18),
                y2=n(ends),
                stroke=INK,
                stroke_width=1.5,
            )
            for at in self.splits.get(name, ())
        ]
        return "".join(drawn) + tag(
            "rect",
            x=n(start),
            y=n(top),
            width=self.count * CELL,
            height=len(rows) * TALL,
            fill="none",
            stroke="#c9c9c9",
        )

    def cell(self, value: float, x: float, y: float) -> str:
        share = (value - self.low) / (1 - self.low)
        return tag(
            "rect",
            cls="cell",
            x=n(x),
            y=n(y),
            width=CELL,
            height=TALL,
            fill=shade(share),
        ) + words(
            f"{value:.2f}",
            x + CELL / 2,
            y + 17,
            text_anchor="middle",
            font_size=13,
            fill="#fff" if share < 0.4 else "#000",
        )

    def __repr__(self) -> str:
        return "\n".join(
            [
                self.title,
                *(
                    f"  {name}, {row}: " + " ".join(f"{v:.2f}" for v in values)
                    for name, rows in self.panels.items()
                    for row, values in rows.items()
                ),
            ]
        )


def heat(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    title: str,
    across: str = "",
    splits: Mapping[str, Sequence[int]] | None = None,
) -> Heat:
    """Panels of numbers up to 1 as colours; see Heat."""
    return Heat(panels, title, across, splits)
