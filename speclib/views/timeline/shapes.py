"""What pictures are made of: rectangles, lines and words, the time axis, the room that text takes.

Positions are pixels along the shared time axis, from its left end. Knows no markup, no notebook,
and nothing of what is stacked above or below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import NamedTuple

from speclib.views.numbers import MILLISECONDS, SECONDS, Unit, duration
from speclib.views.svg import PAD

GUTTER, SIDE = 62, 222  # lane names, left; facts, right


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
    def unit(self) -> Unit:
        return MILLISECONDS if self.span < 2 else SECONDS

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
