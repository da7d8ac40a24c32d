"""Where everything in a timeline goes: the one layout, in pixels, that every output draws.

A figure has one time axis and, stacked on it, one group per run: a lane per device, a row with the
text as it grows, and the run's facts. What depends on how far a reader has zoomed in (tick labels,
the growing text) is laid out once for each of ``LEVELS``. Knows no markup and no notebook.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.errors import SpeclibError
from speclib.views.svg import PAD
from speclib.views.text import fitting, shown, text_width

from .facts import Run, facts
from .lanes import lane, rows_of
from .shapes import Frame, Lane, Mark, Words

LEVELS = (1, 3, 9, 27)
LEAST = 900  # pixels of width
PATIENCE = 200  # pixels of text row after which dense text is cut
LEGEND, HEAD, LANE, GAP, ROW, AXIS, SPACE = 36, 25, 28, 4, 27, 44, 16
STACK, MOST = 19, 4  # pixels of a sequence's row, rows that get them


class Group(NamedTuple):
    """One run. ``rows``: zoom level -> the growing text."""

    run: Run
    y: float
    height: float
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    rows: dict[int, tuple[Words, ...]]
    facts: tuple[str, ...]

    @property
    def row(self) -> float:
        """Where the lanes end and the row of text begins."""
        return self.y + HEAD + sum(lane.height + GAP for lane in self.lanes)


class Figure(NamedTuple):
    frame: Frame
    groups: tuple[Group, ...]
    title: str  # of the axis
    height: float


def marks(run: Run, written: list, frame: Frame) -> tuple[Mark, ...]:
    """A hairline where each round starts, a tick at each commit, a line at the end."""
    starts: dict[int, float] = {}
    for event in run.trace.operations:
        starts[event.round] = min(event.ts, starts.get(event.round, event.ts))
    room = frame.x(run.seconds) / max(1, len(written))
    found, tail, last = [], "", 0.0
    for x in sorted(frame.x(t) for t in starts.values() if t):
        found.append(Mark("round", x, "", min(room, x - last)))
        last = x
    for event, parts in written:
        new = "".join(text for _, text in parts)
        tail = (tail + new)[-70:]
        tip = f"commit of {len(parts)} at {frame.time(event.end)}: “{shown(new)}”\n…{shown(tail)}"
        found.append(Mark("commit", frame.x(event.end), tip, room))
    found.append(Mark("end", frame.x(run.seconds), "", frame.plot))
    return tuple(mark for mark in found if mark.x <= frame.plot + 1e-6)


def growing(written: list, frame: Frame, level: int) -> tuple[Words, ...]:
    """The committed text, each piece ending where it was committed.

    Commits closer together than their text is wide join the next ones, so nothing appears after
    its own time; where even that is too dense, the latest words stand for all.
    """
    rows, waiting, needed, free = [], [], 0.0, 0.0
    commits = [
        (frame.x(e.end) * level, parts)
        for e, parts in written
        if parts and frame.x(e.end) <= frame.plot + 1e-6
    ]
    for i, (x, parts) in enumerate(commits):
        waiting += [(who, shown(text)) for who, text in parts]
        needed += sum(text_width(shown(text)) for _, text in parts)
        room = x - free
        if needed > room and room < PATIENCE and i + 1 < len(commits):
            continue
        rows.append(Words(x / level, tuple(fitting(waiting, room))))
        waiting, needed, free = [], 0.0, x + 5
    return tuple(rows)


def lanes_of(run: Run, top: float, frame: Frame) -> tuple[Lane, ...]:
    """One under the other; higher where sequences are stacked."""
    found = []
    for name in run.lanes:
        events = (e for e in run.trace.operations if e.device == name)
        height = max(LANE, STACK * min(rows_of(events), MOST))
        found.append(lane(run, name, top, height, frame))
        top += height + GAP
    return tuple(found)


def layout(
    runs: list[Run],
    width: float = 1100,
    until: float | None = None,
    levels: tuple[int, ...] = LEVELS,
) -> Figure:
    """``runs`` on one axis, ``until`` seconds long (by default the longest makespan)."""
    if not runs:
        raise SpeclibError("a timeline of nothing: pass at least one result or trace")
    if until is not None and not until > 0:
        raise SpeclibError(
            f"until is {until}: give the axis a length in seconds, above 0"
        )
    if width < LEAST:
        raise SpeclibError(
            f"width is {width}: a readable timeline needs at least {LEAST} pixels"
        )
    longest = max(run.seconds for run in runs)
    frame = Frame(width, min(until or longest, longest) or 1.0)
    if len({run.kind for run in runs}) > 1:
        runs = [
            run._replace(note=", ".join(filter(None, [run.note, run.kind])))
            for run in runs
        ]
    y, groups = PAD + LEGEND, []
    for run in runs:
        written = run.written()
        lanes = lanes_of(run, y + HEAD, frame)
        height = HEAD + max(sum(lane.height + GAP for lane in lanes), LANE + GAP) + ROW
        lines = facts(run, runs, frame.unit)
        height = max(height, 20 * len(lines) + 6)
        groups.append(
            Group(
                run,
                y,
                height,
                lanes,
                marks(run, written, frame),
                {n: growing(written, frame, n) for n in levels},
                lines,
            )
        )
        y += height + SPACE
    return Figure(frame, tuple(groups), axis_title(runs, frame), y - SPACE + AXIS + PAD)


def axis_title(runs: list[Run], frame: Frame) -> str:
    """The unit and the kind of number; kinds never share an axis unnamed."""
    kinds = ", ".join(dict.fromkeys(run.kind for run in runs))
    cut = max(run.seconds for run in runs) > frame.span * (1 + 1e-9)
    more = "; cut off here, the figures beside it are of whole runs" if cut else ""
    return f"time in {frame.unit[0]} ({kinds}{more})"
