"""The content of a timeline's lanes: operations, messages, and waiting between them.

A target pass is one cell. Drafts are a row of cells, one per token::

    a line        | d1 | d2 | d3 | d4 |

    a tree        | d1 | d2 | d3 |          each level's accepted node, or the first one
                  |    | +2 | +1 |          how many other nodes the level has

    sequences     | a1 | a2 | a3 |          the likeliest on top
                  | b1 | b2 | b3 |

Cells are measured in shares of their operation's time; boxes have positions on the time
axis. Messages are drawn if they take time; meanwhile the device waits. This module
knows no operation by name, and writes no markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speclib.drawing.numbers import MILLISECONDS, SECONDS, duration
from speclib.trace.events import Event

from .axis import TimeAxis
from .run import TimelineRun

LEAST_MESSAGE = 0.002  # share of the axis: shorter messages are not drawn
LEAST_WAIT = 1e-6  # the same for waiting


class Cell(NamedTuple):
    """A part of an operation.

    ``kind``: accepted, rejected, discarded, dropped (in a sequence or a tree branch
    that was not followed), score, unused. The cell begins at ``start`` and takes
    ``share``, both as shares of the operation's time. It is in ``row`` of the ``rows``
    that divide the lane's height. ``tip``: lines that explain the cell.
    """

    kind: str
    start: float
    share: float
    label: str
    tip: tuple[str, ...]
    row: int = 0
    rows: int = 1


class Box(NamedTuple):
    """A rectangle in a lane: a cell, a wait, or a message. Sizes are in pixels.

    ``kind``: a cell's kind, or message, idle or lost; it sets the colour. ``label`` is
    written on it, and ``tip`` appears under the pointer.
    """

    kind: str
    x: float
    width: float
    label: str
    tip: str
    row: int = 0
    rows: int = 1


def boxes_of(run: TimelineRun, device: str, axis: TimeAxis) -> list[Box]:
    """A device's operations and the waiting between them.

    They end with the run, or when the device is lost.
    """
    end = run.lost.get(device, run.seconds)
    useless = run.passes_without_use(device)
    boxes: list[Box] = []
    free_since = 0.0
    for event in run.operations_of(device):
        if event.ts >= end:
            break
        asked = _message(event, "question", event.sent, event.ts, axis)
        answered = _message(event, "answer", event.end, event.received, axis)
        begins = event.sent if asked and event.sent is not None else event.ts
        boxes += [*_waiting(device, free_since, begins, axis), *asked]
        for cell in cells_of(event, run):
            if event.id in useless:
                tip = (*cell.tip, "its result was not used")
                cell = cell._replace(kind="unused", tip=tip)
            boxes.append(_box_of(cell, event, axis))
        boxes += answered
        free_since = max(free_since, event.end)
        if answered and event.received is not None:
            free_since = event.received

    boxes += _waiting(device, free_since, end, axis)
    if end < run.seconds:
        tip_of_loss = f"{device} was lost at {axis.time(end)}"
        width = axis.x(run.seconds - end)
        boxes.append(Box("lost", axis.x(end), width, "lost", tip_of_loss))
    return [box for box in boxes if box.x < axis.plot]


def _waiting(device: str, start: float, end: float, axis: TimeAxis) -> list[Box]:
    """The rectangle of a wait; [] if the wait is too short to see."""
    if end - start <= axis.span * LEAST_WAIT:
        return []
    tip = f"{device} waits {axis.time(end - start)}\nfrom {axis.time(start)}"
    return [Box("idle", axis.x(start), axis.x(end - start), "", tip)]


def _message(
    event: Event, name: str, start: float | None, end: float | None, axis: TimeAxis
) -> list[Box]:
    """The rectangle of a question or an answer; [] if it is too short to see."""
    if start is None or end is None or end - start < axis.span * LEAST_MESSAGE:
        return []
    tip = (
        f"{name} under way for {axis.time(end - start)}\nfrom {axis.time(start)}\n"
        f"{event.device}, round {event.round}"
    )
    return [Box("message", axis.x(start), axis.x(end - start), "", tip)]


def _box_of(cell: Cell, event: Event, axis: TimeAxis) -> Box:
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
    place = axis.x(start), axis.x(lasts)
    return Box(cell.kind, *place, cell.label, "\n".join(tip), cell.row, cell.rows)


# -- the cells of an operation ---------------------------------------------------------
def row_count(event: Event) -> int:
    """How many rows of cells the operation needs."""
    return 2 if _is_tree(event) else max(1, len(event.sequences))


def cells_of(event: Event, run: TimelineRun) -> list[Cell]:
    """The cells of one operation; ``run`` spells its tokens."""
    if event.is_scoring:
        return [_target_pass(event, run)]
    if not event.is_drafting:
        return [Cell("unused", 0.0, 1.0, "", (event.op,))]
    if not event.tokens:
        return [Cell("unused", 0.0, 1.0, "", ("drafting, cancelled",))]
    if _is_tree(event):
        return _tree(event, run)
    if len(event.sequences) > 1:
        return _sequences(event, run)
    return _line(event.tokens, event.outcome, run)


def _is_tree(event: Event) -> bool:
    """Whether a level has more than one token."""
    levels = 1 + max(event.depths, default=-1)
    return len(event.sequences) == 1 and len(event.tokens) > levels


def _target_pass(event: Event, run: TimelineRun) -> Cell:
    """One cell, labelled with the drafted text that the pass tests.

    A tree with several branches is not one text, so its label is the number of
    candidates.
    """
    count = event.tested
    tested = event.tokens[len(event.tokens) - count :]
    label = run.spelled(tested).strip("\u00a0")
    if not event.payload.is_line(tested):
        label = f"{count} candidates"

    tip: tuple[str, ...] = ("target pass: one row, for the next token",)
    if tested:
        tip = (f"target pass: verifies {count} drafted", f"“{run.spelled(tested)}”")
    return Cell("score", 0.0, 1.0, label, tip)


def _line(
    tokens: Sequence[int], outcomes: Sequence[str], run: TimelineRun
) -> list[Cell]:
    """One cell per token, each with an equal share of the duration."""
    cells = []
    count = len(tokens)
    for number, (token, outcome) in enumerate(zip(tokens, outcomes, strict=True)):
        tip = (_drafted(token, outcome, run), f"token {number + 1} of {count}")
        cells.append(Cell(outcome, number / count, 1 / count, run.label_of(token), tip))
    return cells


def _tree(event: Event, run: TimelineRun) -> list[Cell]:
    """A cell per level, for its tested node, or else for its first node.

    Below it is the number of the level's other nodes. All levels get an equal share of
    the duration, since the trace contains only the total.
    """
    cells: list[Cell] = []
    levels = 1 + max(event.depths)
    for level in range(levels):
        nodes = [node for node, depth in enumerate(event.depths) if depth == level]
        tested = [node for node in nodes if event.outcome[node] != "discarded"]
        leading = (tested or nodes)[0]
        token, outcome = event.tokens[leading], event.outcome[leading]
        name = f"level {level + 1}"
        tip: tuple[str, ...] = (_drafted(token, outcome, run), f"{name} of {levels}")
        place = level / levels, 1 / levels
        cells.append(Cell(outcome, *place, run.label_of(token), tip, 0, 2))

        others = [event.tokens[node] for node in nodes if node != leading]
        if others:
            listed = " |".join(run.spelled([token]) for token in others)
            tip = (f"{name}, not followed: {listed}",)
            cells.append(Cell("dropped", *place, f"+ {len(others)}", tip, 1, 2))
    return cells


def _sequences(event: Event, run: TimelineRun) -> list[Cell]:
    """A row of cells per sequence, the likeliest on top.

    Each sequence spans the whole duration, since the trace does not record the order in
    which they were written. Sequences that the target did not choose are ``dropped``.
    """
    count = len(event.sequences)
    length = len(event.tokens) // count
    first_outcomes = event.outcome[::length]
    was_tested = first_outcomes[0] != "discarded" or "accepted" in first_outcomes
    leading = 0
    if "accepted" in first_outcomes:
        leading = first_outcomes.index("accepted")

    cells = []
    for row, tokens in enumerate(event.sequences):
        outcomes = event.outcome[row * length : (row + 1) * length]
        note = f"sequence {row + 1} of {count}"
        if was_tested and row != leading:
            note += ": the target chose another"
        for cell in _line(tokens, outcomes, run):
            kind = cell.kind if row == leading else "dropped"
            tip = (*cell.tip, note)
            cells.append(cell._replace(kind=kind, tip=tip, row=row, rows=count))
    return cells


def _drafted(token: int, outcome: str, run: TimelineRun) -> str:
    """One line about a drafted token."""
    what_became = "discarded: never tested" if outcome == "discarded" else outcome
    return f"drafted “{run.spelled([token])}” (id {token}): {what_became}"
