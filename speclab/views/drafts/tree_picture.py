"""The picture of a round in which the draft model wrote a tree.

Each level is a column to the right of its parents. Each leaf has a separate row, and
every other node shares the row of its first leaf, so that the path of first candidates
is a straight line. The path that the target followed is dark. This module reads no
trace.

::

    round 7  a tree of 6: 3 levels, at most 2 wide               heading
    …the text before

    o---[ a ]---[ b ]---[ c ]        row of leaf c
     \\      `---[ d ]                row of leaf d
      `-[ e ]---[ f ]                row of leaf f
        the target follows it for 2 of 3 levels, then writes “g”
    |   |
    ROOT_X, then GAP between a level's left edge and its cells
"""

from __future__ import annotations

from typing import NamedTuple

from speclab.views.shapes import circle, point
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    coordinate,
    rectangle,
    tag,
)
from speclib.drawing.text_in_pictures import text_width

from .draft_rounds import TreeRound
from .parts import ROWS_TOP, WIDTH, cell_width, finished, text_in_cell

# Pixels.
ROW_STEP = 30  # between the tops of two rows
CELL_HEIGHT = 24
ROOT_X = 26  # the end of the text
ROOT_Y = ROWS_TOP + CELL_HEIGHT / 2
WIDEST_LEVEL = 230
GAP = 40  # between two levels' cells, for the edges


class NodeCell(NamedTuple):
    """A node's cell: its left edge, its middle and its width, in pixels."""

    left: float
    middle: float
    width: float
    label: str
    outcome: str

    @property
    def right(self) -> float:
        return self.left + self.width


def tree_height(drafted: TreeRound) -> int:
    """The height of a row per leaf, and of the verdict, in pixels."""
    return ROWS_TOP + ROW_STEP * (len(drafted.leaves) + 1) + PAD


def tree_svg(drafted: TreeRound) -> str:
    """The SVG of a round."""
    cells = node_cells(drafted)
    root = circle(ROOT_X, ROOT_Y, 5, fill=INK)
    body = edges(drafted, cells) + "".join(map(cell_svg, cells)) + root
    verdict_y = ROWS_TOP + ROW_STEP * len(drafted.leaves) + CELL_HEIGHT / 2 + 5
    return finished(drafted, body, tree_height(drafted), (ROOT_X + GAP, verdict_y))


def node_cells(drafted: TreeRound) -> list[NodeCell]:
    """The position and the label of each node."""
    rows = rows_of_nodes(drafted)
    level_width = min(WIDEST_LEVEL, (WIDTH - PAD - ROOT_X) / drafted.depth)
    label_width = level_width - GAP - 12

    cells = []
    for node, level in enumerate(drafted.levels):
        label = shortened(drafted.label(node), label_width)
        cell = NodeCell(
            left=ROOT_X + GAP + level * level_width,
            middle=ROWS_TOP + ROW_STEP * rows[node] + CELL_HEIGHT / 2,
            width=cell_width(label),
            label=label,
            outcome=drafted.outcome(node),
        )
        cells.append(cell)
    return cells


def rows_of_nodes(drafted: TreeRound) -> dict[int, int]:
    """The row of each node, which is that of the first leaf below it."""
    rows: dict[int, int] = {}
    for row, leaf in enumerate(drafted.leaves):
        node = leaf
        # Up to the root, or to a node that already shares an earlier leaf's row.
        while node >= 0 and node not in rows:
            rows[node] = row
            node = drafted.parents[node]
    return rows


def edges(drafted: TreeRound, cells: list[NodeCell]) -> str:
    """The edges to all nodes, with the target's path on top."""
    followed_edges = []
    other_edges = []
    for cell, parent in zip(cells, drafted.parents, strict=True):
        start_x, start_y = float(ROOT_X), ROOT_Y
        if parent >= 0:
            start_x, start_y = cells[parent].right, cells[parent].middle
        if cell.outcome == "accepted":
            followed_edges.append(edge(start_x, start_y, cell, INK, 2.5))
        else:
            other_edges.append(edge(start_x, start_y, cell, "#c9c9c9", 1.5))
    return "".join(other_edges + followed_edges)


def edge(
    start_x: float, start_y: float, end: NodeCell, colour: str, thickness: float
) -> str:
    """A curve down to the row of the node ``end``, then a straight line to it."""
    start = point(start_x, start_y)
    bends = f"{point(start_x + 22, start_y)} {point(start_x + 6, end.middle)}"
    row = point(start_x + 28, end.middle)
    path = f"M{start}C{bends} {row}H{coordinate(end.left)}"
    return tag(
        "path", cls="edge", d=path, fill="none", stroke=colour, stroke_width=thickness
    )


def cell_svg(cell: NodeCell) -> str:
    """A node's cell and its text."""
    box = rectangle(
        cell.left,
        cell.middle - CELL_HEIGHT / 2,
        cell.width,
        CELL_HEIGHT,
        kind=cell.outcome,
        rx=3,
        fill=KIND_COLOURS[cell.outcome],
    )
    label_x = cell.left + cell.width / 2
    return box + text_in_cell(cell.label, label_x, cell.middle + 5, cell.outcome)


def shortened(label: str, width: float) -> str:
    """``label``, shortened with an ellipsis if it is wider than ``width`` pixels."""
    if text_width(label) <= width:
        return label
    while label and text_width(label + "…") > width:
        label = label[:-1]
    return label + "…"
