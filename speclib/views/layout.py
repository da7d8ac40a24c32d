"""Where everything in a timeline goes: the one layout, in pixels, that every output draws.

A figure has one time axis and, stacked on it, one group per run: a lane per device, a row with the
text as it grows, and the run's statistics. Positions along the axis are pixels from its left end.
What depends on how far a reader has zoomed in (tick labels, the growing text) is laid out once for
each of ``LEVELS``. Reads traces only; knows no markup, method, clock or notebook.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from typing import NamedTuple

from ..errors import SpeclibError
from ..trace import Event, Stats, Trace, stats

LEVELS = (1, 2, 4, 8, 16, 32)
PAD, GUTTER, SIDE = 16, 68, 206         # card margin; lane names; statistics, at the right
LEGEND, HEAD, LANE, GAP, ROW, AXIS, SPACE = 34, 24, 28, 4, 26, 46, 14
FONT = 13.5                             # tokens and lane names; headings are larger
NAMES = {"autoregressive": "AR", "speculative": "SD", "pearl": "PEARL", "tree": "Tree SD",
         "easyspec": "EasySpec", "duodecoding": "DuoDecoding", "dsi": "DSI"}
# Widths of Helvetica's letters in 1/1000 of the font size: no wider in the fonts we ask for.
WIDE = {278: " !,./:;I[]\\ft\u00a0", 222: "'ijl|", 333: "()-`r", 500: "cksvxyzJ", 722: "wCDHNRUG&",
        667: "ABEKPSVXY", 833: "mM%", 944: "W", 778: "OQ", 584: "+<=>~", 611: "FLTZ", 1000: "@…"}
WIDTHS = {letter: size / 1000 for size, letters in WIDE.items() for letter in letters}


class Run(NamedTuple):
    """One trace to draw; ``note`` follows the label, ``pieces`` maps ids to their text."""

    label: str
    note: str
    trace: Trace
    pieces: dict[int, str]

    def text(self, token: int) -> str:
        return self.pieces.get(token, f" {token}")

    @property
    def lanes(self) -> list[str]:
        """Devices that did something, the draft's first."""
        used = {e.device for e in self.trace.operations}
        names = [name for name in self.trace.devices if name in used]
        return sorted(names, key=lambda name: not name.startswith("draft"))

    @property
    def seconds(self) -> float:
        return self.trace.makespan

    def idle(self, device: str) -> float:
        """Share of the makespan in which ``device`` waits."""
        return 1 - self.trace.busy(device) / self.seconds if self.seconds else float("nan")


class Shape(NamedTuple):
    """A rectangle of a lane. ``kind``: accepted, rejected, wasted, score, unused or idle."""

    kind: str
    x: float
    width: float
    label: str
    tip: str


class Mark(NamedTuple):
    """A vertical line at ``x``. ``kind``: round, commit or end."""

    kind: str
    x: float
    tip: str


class Words(NamedTuple):
    """Text that ends at ``x``: ``parts`` are (who wrote it, text)."""

    x: float
    parts: tuple[tuple[str, str], ...]


class Group(NamedTuple):
    run: Run
    y: float
    lanes: tuple[tuple[str, float, tuple[Shape, ...]], ...]     # name, y, shapes
    marks: tuple[Mark, ...]
    rows: dict[int, tuple[Words, ...]]                          # level -> the growing text
    facts: tuple[str, ...]
    height: float


@dataclass(frozen=True)
class Frame:
    """The shared axis: ``plot`` pixels wide, ``span`` seconds long."""

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
        name, scale = self.unit
        return f"{number(seconds * scale)} {name}"

    def ticks(self, level: int) -> list[tuple[float, str]]:
        """(x, label) of round times, at least 70 px apart at zoom ``level``."""
        scale = self.unit[1]
        least, step, power = self.span * scale * 70 / self.plot / level, 1.0, 1.0
        while power > least:
            power /= 10
        while (step := next((s * power for s in (1, 2, 5) if s * power >= least), 0)) == 0:
            power *= 10
        digits = max(0, -len(f"{step:.9f}".rstrip("0").split(".")[1])) or \
            len(f"{step:.9f}".rstrip("0").split(".")[1])
        last = int(self.span * scale / step + 1e-9)
        return [(self.x(i * step / scale), f"{i * step:.{digits}f}") for i in range(last + 1)]


class Figure(NamedTuple):
    frame: Frame
    groups: tuple[Group, ...]
    title: str                  # of the axis
    height: float


def number(value: float, digits: int = 4) -> str:
    """``digits`` significant digits, without an exponent; a dash for not-a-number."""
    if isnan(value):
        return "–"
    text = f"{value:.{max(0, digits - len(str(int(abs(value)))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
