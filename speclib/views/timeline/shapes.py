"""What pictures are made of: rectangles, lines and words, the time axis, the room that text takes.

Positions are pixels along the shared time axis, from its left end. Knows no markup, no notebook,
and nothing of what is stacked above or below.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log10
from typing import NamedTuple

from .facts import duration

PAD, GUTTER, SIDE = 16, 62, 222  # card margin; lane names, left; facts, right
FONT = 14  # of tokens; headings are larger, nothing is below 13
# Widths of Helvetica's letters in thousandths of the font size; the fonts we ask for are no wider.
LETTERS = {
    222: "'ijl|",
    278: " !,./:;I[]\\ft\u00a0",
    333: "()-`r",
    500: "cksvxyzJ",
    584: "+<=>~",
    611: "FLTZ",
    667: "ABEKPSVXY",
    722: "wCDHNRUG&",
    778: "OQ",
    833: "mM%",
    944: "W",
    1000: "@…",
}
JOINERS = "\u200c\u200d"  # Indic scripts need them
WIDTHS = {letter: size for size, letters in LETTERS.items() for letter in letters}


class Shape(NamedTuple):
    """A rectangle in a lane. ``kind``: accepted, rejected, wasted, dropped, score, unused, idle or
    lost. ``row`` of ``rows``: its part of the lane's height."""

    kind: str
    x: float
    width: float
    label: str
    tip: str
    row: int = 0
    rows: int = 1


class Mark(NamedTuple):
    """A vertical line. ``kind``: round, commit or end. ``room``: pixels between its like."""

    kind: str
    x: float
    tip: str
    room: float


class Words(NamedTuple):
    """Text that ends at ``x``; ``parts`` are (who wrote it, text)."""

    x: float
    parts: tuple[tuple[str, str], ...]


class Lane(NamedTuple):
    name: str
    y: float
    height: float
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Frame:
    """The shared axis: ``span`` seconds on ``plot`` of the figure's ``width`` pixels."""

    width: float
    span: float

    @property
    def plot(self) -> float:
        return self.width - 2 * PAD - GUTTER - SIDE

    @property
    def unit(self) -> tuple[str, float]:
        return ("ms", 1e3) if self.span < 2 else ("s", 1.0)

    def x(self, seconds: float) -> float:
        return seconds / self.span * self.plot

    def time(self, seconds: float) -> str:
        return duration(seconds, self.unit)

    def ticks(self, level: int) -> list[tuple[float, str]]:
        """(x, label) of round times, at least 64 px apart at zoom ``level``."""
        total = self.span * self.unit[1]
        least = total * 64 / self.plot / level
        power = 10.0 ** floor(log10(least))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))
        digits = max(0, -floor(log10(step * (1 + 1e-9))))
        return [
            (i * step / total * self.plot, f"{i * step:.{digits}f}")
            for i in range(int(total / step + 1e-9) + 1)
        ]


@lru_cache(maxsize=1 << 14)
def text_width(text: str, size: float = FONT) -> float:
    """Pixels, an upper estimate."""

    def one(letter: str) -> int:
        if unicodedata.combining(letter):
            return 0
        return WIDTHS.get(letter) or (
            1000 if unicodedata.east_asian_width(letter) in "WF" else 600
        )

    return sum(map(one, text)) * size / 1000


def shown(text: str) -> str:
    """A token's text on one line: line ends spelled out, blanks kept, no control characters."""
    text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return "".join(
        "\u00a0"
        if letter.isspace()
        else letter
        if letter.isprintable() or letter in JOINERS
        else "\ufffd"
        for letter in text
    )


def label_of(text: str) -> str:
    """What a cell shows: the token without its blanks, or dots when it is nothing else."""
    return shown(text.strip(" ") or "·" * min(len(text), 4))
