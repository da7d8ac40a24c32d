"""What stands in the lanes of a timeline: rectangles, lines and words, each with its tooltip.

Positions are pixels along the shared time axis, from its left end. Knows no markup, no notebook,
and nothing of what is stacked above or below.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log10
from typing import NamedTuple

from ..trace import Event
from .runs import Run, chosen, duration

PAD, GUTTER, SIDE = 16, 62, 222         # card margin; lane names, left; facts, right
FONT = 14                               # of tokens; headings are larger, nothing is below 13
# Widths of Helvetica's letters in thousandths of the font size; the fonts we ask for are no wider.
LETTERS = {222: "'ijl|", 278: " !,./:;I[]\\ft\u00a0", 333: "()-`r", 500: "cksvxyzJ",
           584: "+<=>~", 611: "FLTZ", 667: "ABEKPSVXY", 722: "wCDHNRUG&", 778: "OQ",
           833: "mM%", 944: "W", 1000: "@…"}
JOINERS = "\u200c\u200d"               # Indic scripts need them
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
        return [(i * step / total * self.plot, f"{i * step:.{digits}f}")
                for i in range(int(total / step + 1e-9) + 1)]


@lru_cache(maxsize=1 << 14)
def text_width(text: str, size: float = FONT) -> float:
    """Pixels, an upper estimate."""
    def one(letter: str) -> int:
        if unicodedata.combining(letter):
            return 0
        return WIDTHS.get(letter) or (1000 if unicodedata.east_asian_width(letter) in "WF" else 600)
    return sum(map(one, text)) * size / 1000


def shown(text: str) -> str:
    """A token's text on one line: line ends spelled out, blanks kept, no control characters."""
    text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return "".join("\u00a0" if letter.isspace() else letter
                   if letter.isprintable() or letter in JOINERS else "\ufffd" for letter in text)


def label_of(text: str) -> str:
    """What a cell shows: the token without its blanks, or dots when it is nothing else."""
    return shown(text.strip(" ") or "·" * min(len(text), 4))


def tip_of(run: Run, event: Event, frame: Frame, *lines: str) -> str:
    start = frame.time(event.ts)
    lasts = duration(event.dur, ("ms", 1e3) if event.dur < 1 else ("s", 1.0))
    cache = f"KV cache: {event.kept} kept, {event.fed} fed"
    return "\n".join([*lines, f"{event.device}, round {event.round}",
                      f"starts at {start}, takes {lasts}", cache])


def proposal(run: Run, event: Event, frame: Frame) -> Iterator[Shape]:
    """One cell per drafted token, an equal share of the duration each."""
    width = frame.x(event.dur) / max(1, len(event.tokens))
    for i, (token, outcome) in enumerate(zip(event.tokens, event.outcome, strict=True)):
        why = {"wasted": "wasted: never tested"}.get(outcome, outcome)
        part = event._replace(ts=event.ts + event.dur * i / len(event.tokens),
                              dur=event.dur / len(event.tokens))
        tip = tip_of(run, part, frame, f"drafted “{shown(run.piece(token))}” (id {token}): {why}",
                     f"token {i + 1} of {len(event.tokens)}")
        yield Shape(outcome, frame.x(part.ts), width, label_of(run.piece(token)), tip)
    if not event.tokens:
        yield Shape("unused", frame.x(event.ts), frame.x(event.dur), "",
                    tip_of(run, event, frame, "drafting, cancelled"))


def branching(run: Run, event: Event, frame: Frame) -> Iterator[Shape]:
    """A row of cells per sequence, the likeliest on top; those that did not go on are ``dropped``.
    All sequences share the duration: nothing says in which order they were written."""
    taken = chosen(event)
    lead, tested = taken or 0, "wasted" != event.outcome[0] or taken is not None
    for row, tokens in enumerate(event.drafts):
        each = len(tokens)
        part = event._replace(tokens=tokens, outcome=event.outcome[row * each:(row + 1) * each])
        begins = "the target chose another" if tested and row != lead else ""
        for shape in proposal(run, part, frame):
            tip = f"sequence {row + 1} of {len(event.drafts)}"
            tip += f": {begins}" if begins else ""
            yield shape._replace(kind=shape.kind if row == lead else "dropped",
                                 tip=f"{shape.tip}\n{tip}", row=row, rows=len(event.drafts))


def rows_of(run: Run, device: str) -> int:
    """The most sequences that ``device`` drafted at once."""
    return max((e.sequences for e in run.trace.operations if e.device == device), default=1)


def scoring(run: Run, event: Event, frame: Frame, used: bool) -> Shape:
    """A target pass; ``unused`` when it failed, was cancelled, came too late or was of a text that
    was not to be."""
    tested = [run.piece(t) for t in event.tokens[len(event.tokens) - event.last:]]
    what = "target pass: one row, for the next token"
    if tested:
        what = (f"target pass: verifies {len(tested)} drafted\n“"
                + shown("".join(tested)) + "”")
    note = [] if used else ["its result was not used"]
    return Shape("score" if used else "unused", frame.x(event.ts), frame.x(event.dur),
                 shown("".join(tested).strip(" ")), tip_of(run, event, frame, what, *note))


def lane(run: Run, device: str, y: float, height: float, frame: Frame) -> Lane:
    """The device's operations and, between them, its waiting, up to the run's end or its own."""
    last = max((e.end for e in run.trace.commits), default=0.0) * (1 + 1e-9)
    shapes, free, stale = [], 0.0, run.stale(device)
    ends = run.lost.get(device, run.seconds)
    events = sorted((e for e in run.trace.operations if e.device == device and e.ts < ends),
                    key=lambda e: e.ts)
    for event in [*events, None]:
        start = ends if event is None else event.ts
        if start - free > frame.span * 1e-6:
            tip = f"{device} waits {frame.time(start - free)}\nfrom {frame.time(free)}"
            shapes.append(Shape("idle", frame.x(free), frame.x(start - free), "", tip))
        if event is None or event.ts >= frame.span:
            break
        free = max(free, event.ts + event.dur)
        shapes += (branching(run, event, frame) if event.sequences > 1
                   else proposal(run, event, frame) if event.op in ("propose", "branch")
                   else [scoring(run, event, frame, event.tokens and event.end <= last
                                 and event.id not in stale)])
    if ends < run.seconds:
        shapes.append(Shape("lost", frame.x(ends), frame.x(run.seconds - ends), "lost",
                            f"{device} was lost at {frame.time(ends)}"))
    return Lane(device, y, height, tuple(shapes))
