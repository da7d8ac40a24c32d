"""What stands in the lanes of a timeline: operations, and waiting between them.

Where messages take their time, that is drawn too: the device waits for a question that
is under way, or for one that cannot be asked before its answer has come.

An operation's cells are in shares of its time (``cells.py``). Here they get their
position on the time axis and their tooltips.

Knows no operation, no markup, no notebook, and nothing of what is stacked above or
below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from speclib.drawing.numbers import MILLISECONDS, SECONDS, duration
from speclib.drawing.text_in_pictures import one_line, token_label
from speclib.trace.events import Event

from .cells import Cell, cells_of, row_count
from .drawn_parts import Box, Lane, TimeAxis
from .run import TimelineRun

LEAST_MESSAGE = 0.002  # of the axis: what a message takes to be drawn


class RunWords:
    """How the tokens of one run are spelled in its lanes."""

    def __init__(self, run: TimelineRun):
        self.run = run

    def label(self, token: int) -> str:
        """Short: what fits into a cell."""
        return token_label(self.run.piece(token))

    def spelled(self, tokens: Sequence[int]) -> str:
        """All of the tokens' text, on one line."""
        return one_line("".join(map(self.run.piece, tokens)))


def rows_of(events: Iterable[Event]) -> int:
    """The most rows of cells that an operation needs at once."""
    return max(map(row_count, events), default=1)


def lay_out_lane(
    run: TimelineRun, device: str, y: float, height: float, axis: TimeAxis
) -> Lane:
    """The device's operations and, between them, its waiting.

    It reaches up to the run's end, or to the moment at which the device was lost.
    """
    end = run.lost.get(device, run.seconds)
    events = [
        event
        for event in run.trace.operations
        if event.device == device and event.ts < end
    ]
    events.sort(key=lambda event: event.ts)
    useless = passes_without_use(run, device)
    words = RunWords(run)

    boxes: list[Box] = []
    free_since = 0.0
    for event in events:
        asked = message_boxes(event, "question", event.sent, event.ts, axis)
        begins = event.sent if asked and event.sent is not None else event.ts
        boxes += waiting_boxes(device, free_since, begins, axis)
        boxes += asked
        if event.ts >= axis.span:
            break  # the axis ends before this
        free_since = max(free_since, event.end)
        for cell in cells_of(event, words):
            if event.id in useless:
                tip = (*cell.tip, "its result was not used")
                cell = cell._replace(kind="unused", tip=tip)
            boxes.append(box_of(cell, event, axis))
        answered = message_boxes(event, "answer", event.end, event.received, axis)
        boxes += answered
        if answered and event.received is not None:
            free_since = event.received
    else:
        boxes += waiting_boxes(device, free_since, end, axis)

    if end < run.seconds:
        tip_of_loss = f"{device} was lost at {axis.time(end)}"
        width = axis.x(run.seconds - end)
        boxes.append(Box("lost", axis.x(end), width, "lost", tip_of_loss))
    return Lane(device, y, height, tuple(boxes))


def passes_without_use(run: TimelineRun, device: str) -> set[int]:
    """Ids of ``device``'s target passes whose rows nobody used.

    They failed or were cancelled, ended after the last commit, or were of a text that
    was not to be.
    """
    last_commit = max((commit.end for commit in run.trace.commits), default=0.0)
    in_time = last_commit * (1 + 1e-9)
    useless = set(run.stale_passes(device))
    for event in run.trace.operations:
        if event.is_scoring and (not event.tokens or event.end > in_time):
            useless.add(event.id)
    return useless


def message_boxes(
    event: Event, name: str, start: float | None, end: float | None, axis: TimeAxis
) -> list[Box]:
    """The rectangle of a question or an answer; none where it is too short to see."""
    if start is None or end is None or end - start < axis.span * LEAST_MESSAGE:
        return []
    tip = (
        f"{name} under way for {axis.time(end - start)}\nfrom {axis.time(start)}\n"
        f"{event.device}, round {event.round}"
    )
    return [Box("message", axis.x(start), axis.x(end - start), "", tip)]


def waiting_boxes(device: str, start: float, end: float, axis: TimeAxis) -> list[Box]:
    """The rectangle of an idle device; none where it waits too shortly to be seen."""
    if end - start <= axis.span * 1e-6:
        return []
    tip = f"{device} waits {axis.time(end - start)}\nfrom {axis.time(start)}"
    return [Box("idle", axis.x(start), axis.x(end - start), "", tip)]


def box_of(cell: Cell, event: Event, axis: TimeAxis) -> Box:
    """A cell of ``event`` on the time axis."""
    start = event.ts + event.dur * cell.start
    lasts = event.dur * cell.share
    unit = MILLISECONDS if lasts < 1 else SECONDS
    tip = [
        *cell.tip,
        f"{event.device}, round {event.round}",
        f"starts at {axis.time(start)}, takes {duration(lasts, unit)}",
        f"KV cache: {event.kept} kept, {event.fed} fed",
    ]
    return Box(
        cell.kind,
        axis.x(start),
        axis.x(lasts),
        cell.label,
        "\n".join(tip),
        cell.row,
        cell.rows,
    )
