"""The time axis of a timeline: its positions, its ticks, and how times are written."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import NamedTuple

from speclib.drawing.numbers import MILLISECONDS, SECONDS, Unit, duration
from speclib.drawing.svg import PAD

GUTTER = 62  # pixels left of the axis, for the names of lanes
SIDE = 222  # pixels right of it, for the facts
LEAST_WIDTH = 860  # pixels of a picture: enough for the facts and an axis
TICK_DISTANCE = 64  # pixels: the least distance between two labels on the axis


class Tick(NamedTuple):
    """A labelled point on the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class TimeAxis:
    """The time axis that all runs share.

    ``width``: of the whole picture, in pixels. ``span``: how many seconds it shows.

    ::

        |<------------------------- width -------------------------->|
        | PAD | GUTTER |<------------ plot ------------>| SIDE | PAD |
              | names    0          seconds         span  facts |

    An x is in pixels from the left end of the axis.
    """

    width: float
    span: float

    @property
    def plot(self) -> float:
        """Length of the axis in pixels."""
        return self.width - 2 * PAD - GUTTER - SIDE

    @property
    def unit(self) -> Unit:
        """The unit of times on this axis."""
        return MILLISECONDS if self.span < 2 else SECONDS

    def x(self, seconds: float) -> float:
        """The position of a time, or the width of a duration, in pixels."""
        return seconds / self.span * self.plot

    def time(self, seconds: float) -> str:
        """A time or a duration in the axis's unit."""
        return duration(seconds, self.unit)

    def ticks(self, zoom: int = 1) -> list[Tick]:
        """Round times, at least ``TICK_DISTANCE`` apart at this ``zoom``.

        They are 1, 2 or 5 times a power of ten apart.
        """
        total = self.span * self.unit.per_second
        least_step = total * TICK_DISTANCE / self.plot / zoom
        power = 10.0 ** floor(log10(least_step))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= least_step)
        decimals = max(0, -floor(log10(step * (1 + 1e-9))))

        ticks = []
        for i in range(int(total / step + 1e-9) + 1):
            x = i * step / total * self.plot
            ticks.append(Tick(x, f"{i * step:.{decimals}f}"))
        return ticks
