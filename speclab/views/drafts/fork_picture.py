"""The picture of a round in which the draft model wrote a branch for each outcome.

The first row is the window, with a column for each token. Below it is a row for each
guessed outcome. Each of these rows begins in the column after the last window token
that its outcome assumes to be accepted, and a line leads there from that token. A frame
marks the actual outcome. This module reads no trace.

::

    round 7  4 outcomes guessed, 2 tokens drafted for each       heading
    …the text before

    o---[ w1 ]--[ w2 ]           the window, which the target tests meanwhile
    |     |       `--( z )[ z1 ][ z2 ]      both pass, then z
    |     `--( y )[ y1 ][ y2 ]              w1 passes, then y
    `--( x )[ x1 ][ x2 ]                    w1 fails, and x replaces it
        1 of 2 pass, then the target writes “y”: a hit, ...
"""

from __future__ import annotations

from typing import NamedTuple

from speclab.views.shapes import centred, circle, point
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    QUIET,
    WRITER_COLOURS,
    coordinate,
    rectangle,
    tag,
    text_at,
)

from .draft_rounds import ForkRound
from .parts import ROWS_TOP, WIDTH, finished, patterns_of, text_in_cell
from .tree_picture import shortened

# Pixels.
ROW_STEP = 30  # between the tops of two rows
CELL_HEIGHT = 24
ROOT_X = 26  # the end of the text
CELLS_LEFT = 56
WIDEST_COLUMN = 110
GAP = 4  # between two columns


class Grid(NamedTuple):
    """The layout of the cells; ``column`` is the width of a column in pixels."""

    column: float

    def left(self, index: int) -> float:
        """The left edge of the column at ``index``, in pixels."""
        return CELLS_LEFT + index * self.column

    @property
    def cell(self) -> float:
        """The width of a cell, in pixels."""
        return self.column - GAP


def grid_of(drafted: ForkRound) -> Grid:
    """Columns for the whole window, the guess after it, and the longest branch."""
    columns = len(drafted.window) + 1 + drafted.length
    room = WIDTH - PAD - CELLS_LEFT
    return Grid(min(WIDEST_COLUMN, room / columns))


def fork_height(drafted: ForkRound) -> int:
    """The height of the window, a row per branch, and the verdict, in pixels."""
    return ROWS_TOP + ROW_STEP * (drafted.width + 2) + PAD


def row_top(row: int) -> float:
    """The top of a row, in pixels; row 0 is the window's."""
    return ROWS_TOP + ROW_STEP * row


def fork_svg(drafted: ForkRound) -> str:
    """The SVG of a round."""
    name = patterns_of(drafted)
    grid = grid_of(drafted)
    rows = rows_of_branches(drafted)

    body = []
    for branch in sorted(rows, key=lambda branch: branch == drafted.hit):
        body.append(branch_edge(drafted, grid, branch, rows[branch]))
    body.append(window_cells(drafted, grid, name))
    for branch, row in rows.items():
        body.append(branch_cells(drafted, grid, branch, row, name))
    body.append(circle(ROOT_X, row_top(0) + CELL_HEIGHT / 2, 5, fill=INK))
    verdict_y = row_top(drafted.width + 1) + CELL_HEIGHT / 2 + 5
    at = CELLS_LEFT, verdict_y
    return finished(drafted, "".join(body), fork_height(drafted), at)


def rows_of_branches(drafted: ForkRound) -> dict[int, int]:
    """The row of each branch; the longest accepted prefix comes first.

    In this order no line crosses a cell.
    """
    by_accepted = sorted(
        range(drafted.width), key=lambda branch: -drafted.branches[branch][0].accepted
    )
    return {branch: row for row, branch in enumerate(by_accepted, start=1)}


def window_cells(drafted: ForkRound, grid: Grid, name: str) -> str:
    """A cell for each token of the window, or a note if the window is empty."""
    y = row_top(0)
    if not drafted.window:
        return text_at(
            "no window: the target reads only the text",
            CELLS_LEFT,
            y + CELL_HEIGHT / 2 + 5,
            fill=QUIET,
        )
    cells = []
    for index, token in enumerate(drafted.window):
        outcome = drafted.outcome_in_window(index)
        outcome = "discarded" if outcome == "unread" else outcome
        label = drafted.word(token)
        cells.append(cell(grid, grid.left(index), y, label, outcome, name))
    return "".join(cells)


def branch_edge(drafted: ForkRound, grid: Grid, branch: int, row: int) -> str:
    """A line from the last token assumed to be accepted down to the guess."""
    outcome, _ = drafted.branches[branch]
    start_x = float(ROOT_X)
    if outcome.accepted:
        start_x = grid.left(outcome.accepted) - GAP - 10
    end_x = grid.left(outcome.accepted)
    middle = row_top(row) + CELL_HEIGHT / 2
    top = row_top(0) + CELL_HEIGHT
    bend = f"{point(start_x, middle)} {point(start_x + 6, middle)}"
    is_hit = branch == drafted.hit
    return tag(
        "path",
        cls="edge",
        d=f"M{point(start_x, top)}V{coordinate(middle - 8)}Q{bend}H{coordinate(end_x)}",
        fill="none",
        stroke=INK if is_hit else "#c9c9c9",
        stroke_width=2.5 if is_hit else 1.5,
    )


def branch_cells(
    drafted: ForkRound, grid: Grid, branch: int, row: int, name: str
) -> str:
    """A rounded cell for the guess, and one per token; framed if it is a hit."""
    outcome, tokens = drafted.branches[branch]
    y = row_top(row)
    left = grid.left(outcome.accepted)
    is_hit = branch == drafted.hit
    guess = rectangle(
        left,
        y,
        grid.cell,
        CELL_HEIGHT,
        kind="guess",
        rx=CELL_HEIGHT / 2,
        fill="#fff",
        stroke=WRITER_COLOURS["target"] if is_hit else QUIET,
        stroke_width=2 if is_hit else 1,
    )
    label = shortened(drafted.word(outcome.token), grid.cell - 14)
    middle = left + grid.cell / 2
    parts = [guess, centred(label, middle, y + 17)]
    for index, token in enumerate(tokens):
        x = grid.left(outcome.accepted + 1 + index)
        kind = drafted.outcome(branch, index)
        parts.append(cell(grid, x, y, drafted.word(token), kind, name))
    if is_hit:
        width = grid.column * (1 + len(tokens)) - GAP
        parts.append(frame(left, y, width))
    return "".join(parts)


def cell(grid: Grid, x: float, y: float, label: str, kind: str, name: str) -> str:
    """A drafted token's cell and its text."""
    is_hatched = kind == "discarded"
    colour = f"url(#{name}-discarded)" if is_hatched else KIND_COLOURS[kind]
    box = rectangle(x, y, grid.cell, CELL_HEIGHT, kind=kind, rx=3, fill=colour)
    text = shortened(label, grid.cell - 8)
    return box + text_in_cell(text, x + grid.cell / 2, y + 17, kind)


def frame(left: float, y: float, width: float) -> str:
    """A frame around the branch that is the next window."""
    return rectangle(
        left - 3,
        y - 3,
        width + 6,
        CELL_HEIGHT + 6,
        kind="chosen",
        rx=4,
        fill="none",
        stroke=INK,
        stroke_width=2,
    )
