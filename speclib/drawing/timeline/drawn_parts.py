"""What a timeline is made of: the time axis, and the boxes, lines and words along it.

Positions are pixels along the time axis, from its left end. Knows no markup, no
notebook, and nothing of what is stacked above or below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import NamedTuple

from speclib.drawing.numbers import MILLISECONDS, SECONDS, Unit, duration
from speclib.drawing.svg import PAD
from speclib.drawing.text_in_pictures import TextPart

GUTTER = 62  # pixels left of the axis, for the names of lanes
NAME_GAP = 8  # pixels of them between a name and its lane
SIDE = 222  # pixels right of it, for the facts
WIDE = 860  # pixels of a picture whose facts fit beside the axis
TICK_DISTANCE = 64  # pixels between two labels of the axis, at least


class Box(NamedTuple):
    """A rectangle in a lane: an operation, a part of one, or a wait.

    ``kind``: accepted, rejected, discarded, dropped, score, unused, message, idle or
    lost; it decides the colour. ``label`` is written on it, ``tip`` appears under the
    pointer. A lane can be divided into ``rows``, one above the other; the box then
    stands in ``row``, from 0.
    """

    kind: str
    x: float
    width: float
    label: str
    tip: str
    row: int = 0
    rows: int = 1


class Mark(NamedTuple):
    """A vertical line.

    ``kind``: round, commit or end. ``room``: pixels to the next mark of its kind.
    """

    kind: str
    x: float
    tip: str
    room: float


class TextEnd(NamedTuple):
    """A piece of the growing text; its last letter ends at ``x``."""

    x: float
    parts: tuple[TextPart, ...]


class Lane(NamedTuple):
    """One device's row of boxes; ``y`` is its upper edge."""

    name: str
    y: float
    height: float
    boxes: tuple[Box, ...]


class Tick(NamedTuple):
    """A labelled point of the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class TimeAxis:
    """The time axis that all runs share.

    ``width``: pixels of the whole picture. ``span``: seconds that the axis shows.

    ::

        |<------------------------- width -------------------------->|
        | PAD | GUTTER |<------------ plot ------------>| SIDE | PAD |
              | names    0          seconds         span  facts |

    In a narrow picture there is no SIDE, and the facts stand above the lanes.
    """

    width: float
    span: float

    @property
    def plot(self) -> float:
        """Length of the axis in pixels."""
        side = 0 if self.is_narrow else SIDE
        return self.width - 2 * PAD - GUTTER - side

    @property
    def is_narrow(self) -> bool:
        """Whether the facts do not fit beside the axis."""
        return self.width < WIDE

    @property
    def unit(self) -> Unit:
        """The unit in which times on this axis are written."""
        return MILLISECONDS if self.span < 2 else SECONDS

    def x(self, seconds: float) -> float:
        """Where a time stands, or how wide a duration is: pixels."""
        return seconds / self.span * self.plot

    def time(self, seconds: float) -> str:
        """A time or a duration in the axis's unit."""
        return duration(seconds, self.unit)

    def ticks(self, zoom: int) -> list[Tick]:
        """Round times, at least ``TICK_DISTANCE`` apart at this zoom level."""
        total = self.span * self.unit.per_second
        least_step = total * TICK_DISTANCE / self.plot / zoom
        step = round_up_to_1_2_5(least_step)
        decimals = max(0, -floor(log10(step * (1 + 1e-9))))

        ticks = []
        for i in range(int(total / step + 1e-9) + 1):
            x = i * step / total * self.plot
            ticks.append(Tick(x, f"{i * step:.{decimals}f}"))
        return ticks


def round_up_to_1_2_5(value: float) -> float:
    """The next larger number of the form 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(value))
    for factor in (1, 2, 5):
        if factor * power >= value * (1 - 1e-9):
            return factor * power
    return 10 * power
