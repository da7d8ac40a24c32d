"""The picture of a round in which the draft model wrote several sequences.

A line leads from the end of the text to each sequence. Along it are the draft model's
probability of the sequence's first token, as a bar and as a number, and the sequence's
tokens. A dashed line marks the threshold θ. This module reads no trace.

::

    round 7  2 sequences of 3 tokens, θ = P₁·P = 0.200           heading
    …the text before, its end still to be tested

          the draft model's probability     the sequences
       ,--##############            0.500   [ a ][ b ][ c ]
      o---#######                   0.250   [ d ][ e ][ f ]      framed: it continues
       `--#######                   0.250   all other words together
               : θ
                                            the target's next word is “d”: ...
      |   |                                 |
      FORK_X  BARS_LEFT                     CELLS_LEFT
"""

from __future__ import annotations

from speclab.views.shapes import centred, circle, point
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    QUIET,
    WRITER_COLOURS,
    rectangle,
    tag,
    text_at,
    vertical_line,
)

from .draft_rounds import SequencesRound
from .parts import ROWS_TOP, WIDTH, cell_width, finished, patterns_of, text_in_cell

# Pixels.
ROW_STEP = 34  # between the tops of two rows
CELL_HEIGHT = 26
FORK_X = 26  # the end of the text
BARS_LEFT = 84
BAR_LENGTH = 250  # for a probability of 1
CELLS_LEFT = 410
CELLS_RIGHT = WIDTH - PAD - 40  # the number of tokens left out is to its right

OTHER_WORDS_COLOUR = "#c9c9c9"


def sequences_height(drafted: SequencesRound) -> int:
    """The height of the sequences, the other words and the verdict, in pixels."""
    return ROWS_TOP + ROW_STEP * (drafted.width + 2) + PAD


def sequences_svg(drafted: SequencesRound) -> str:
    """The SVG of a round."""
    name = patterns_of(drafted)
    fork_y = ROWS_TOP + ROW_STEP * drafted.width / 2 - (ROW_STEP - CELL_HEIGHT) / 2

    body = []
    for row, chance in enumerate(drafted.chances):
        y = ROWS_TOP + ROW_STEP * row
        body.append(chance_bar(chance, y, fork_y, WRITER_COLOURS["draft"]))
        body.append(sequence_cells(drafted, row, y, name))

    y = ROWS_TOP + ROW_STEP * drafted.width
    body.append(chance_bar(drafted.chance_of_others, y, fork_y, OTHER_WORDS_COLOUR))
    body.append(text_at("all other words together", CELLS_LEFT, text_y(y)))
    body.append(circle(FORK_X, fork_y, 5, fill=INK))
    if drafted.threshold:
        body.append(threshold_line(drafted.threshold, y + CELL_HEIGHT))
    body.append(text_at("the draft model's probability", BARS_LEFT, ROWS_TOP - 10))
    body.append(text_at("the sequences", CELLS_LEFT, ROWS_TOP - 10))
    at = CELLS_LEFT, text_y(y + ROW_STEP)
    return finished(drafted, "".join(body), sequences_height(drafted), at)


def text_y(row_top: float) -> float:
    """The baseline of text in the middle of a row."""
    return row_top + CELL_HEIGHT / 2 + 5


def chance_bar(chance: float, y: float, fork_y: float, colour: str) -> str:
    """A curve from the end of the text, then the probability as a bar and a number."""
    middle = y + CELL_HEIGHT / 2
    start = point(FORK_X, fork_y)
    bends = f"{point(FORK_X + 34, fork_y)} {point(FORK_X + 24, middle)}"
    end = point(BARS_LEFT, middle)
    curve = tag(
        "path", d=f"M{start}C{bends} {end}", fill="none", stroke=QUIET, stroke_width=1.5
    )

    width = max(chance * BAR_LENGTH, 1)
    bar = rectangle(
        BARS_LEFT, y + 3, width, CELL_HEIGHT - 6, kind="chance", fill=colour
    )
    number = text_at(
        f"{chance:.3f}", CELLS_LEFT - 22, middle + 5, text_anchor="end", fill=INK
    )
    return curve + bar + number


def sequence_cells(drafted: SequencesRound, row: int, y: float, name: str) -> str:
    """A cell for each token that fits, with a frame if the sequence continues.

    ``name``: the name of the picture's patterns.
    """
    tokens = drafted.sequences[row]
    cells = []
    x = float(CELLS_LEFT)
    for position, token in enumerate(tokens):
        label = drafted.word(token)
        width = cell_width(label)
        if x + width > CELLS_RIGHT:
            left_out = len(tokens) - position
            cells.append(text_at(f"+ {left_out}", x + 6, text_y(y)))
            break

        outcome = drafted.outcome(row, position)
        is_hatched = outcome == "discarded"
        colour = f"url(#{name}-discarded)" if is_hatched else KIND_COLOURS[outcome]
        # The last two pixels stay white to separate neighbours.
        cells.append(rectangle(x, y, width - 2, CELL_HEIGHT, kind=outcome, fill=colour))
        cells.append(text_in_cell(label, x + width / 2 - 1, text_y(y), outcome))
        x += width

    if row == drafted.chosen_sequence:
        cells.append(frame_around_cells(y, right=x))
    return "".join(cells)


def frame_around_cells(y: float, right: float) -> str:
    """A frame around a row's cells, which end at ``right``."""
    return rectangle(
        CELLS_LEFT - 3,
        y - 3,
        right - CELLS_LEFT + 4,
        CELL_HEIGHT + 6,
        kind="chosen",
        rx=4,
        fill="none",
        stroke=INK,
        stroke_width=2,
    )


def threshold_line(threshold: float, bottom: float) -> str:
    """A dashed line through all bars, at θ."""
    x = BARS_LEFT + threshold * BAR_LENGTH
    colour = KIND_COLOURS["rejected"]
    line = vertical_line(
        x,
        ROWS_TOP - 4,
        bottom + 2,
        kind="theta",
        stroke=colour,
        stroke_width=2,
        stroke_dasharray="5 3",
    )
    name = centred("θ", x, bottom + 18, fill=colour)
    return line + name
