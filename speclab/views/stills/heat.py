"""Panels of numbers as colours, on one scale that ends at 1: a still picture.

Knows no network, no run and no notebook.

::

    title
                first panel                      second panel
         across   0    1  | 2    3        across   0    1  | 2    3
          row a [1.00|0.98|0.93|0.91]      row a [1.00|0.97|0.90|0.88]
          row b [1.00|0.97|0.90|0.85]      row b [1.00|0.95|0.87|0.80]
                          ^ a split
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor

from speclab.views.shapes import Still, centred, title_at
from speclab.views.some_numbers import AnyNumbers
from speclib.arguments import checked
from speclib.drawing.svg import INK, PAD, rectangle, text_at, vertical_line
from speclib.drawing.text_in_pictures import text_width
from speclib.errors import BadValue

# Pixels.
WIDTH = 1100
TITLE_HEIGHT = 28
PANEL_HEAD = 46  # a panel's name and its columns' numbers
HEAD_FONT_SIZE = 13  # of these numbers, and of what they are
CELL_WIDTH = 42
CELL_HEIGHT = 24
BETWEEN_PANELS = 30  # side by side
BETWEEN_LINES = 18  # of panels, one under the other

DEEP = (0x1F, 0x4F, 0x8F)  # red, green, blue of the lowest number
PALE = (0xFF, 0xFF, 0xFF)  # of 1


def shade(share: float) -> str:
    """A colour between deep blue at 0 and white at 1: what differs most stands out."""
    share = min(max(share, 0), 1)
    colour = "#"
    for deep, pale in zip(DEEP, PALE, strict=True):
        colour += f"{round(deep + (pale - deep) * share):02x}"
    return colour


class Heat(Still):
    """Panels of rows of numbers, each number in a cell with its colour.

    ``panels``: name -> {row: values}; all rows have equally many values, which are at
    most 1. Columns are counted from 0, and ``across`` says what they are. ``splits``:
    name of a panel -> columns before which a line stands. ``title`` says what the
    numbers are, and their kind.

    Raises SpeclibError where rows have different lengths.
    """

    @checked
    def __init__(
        self,
        panels: Mapping[str, Mapping[str, AnyNumbers]],
        title: str,
        across: str = "",
        splits: Mapping[str, AnyNumbers] | None = None,
    ):
        self.panels = dict(panels)
        self.title = title
        self.across = across
        self.splits = splits or {}
        self.columns = common_length(self.panels)
        self.low = low_end(self.panels)
        self._arrange_panels()

    def _arrange_panels(self) -> None:
        """Sets the size of a panel, how many stand side by side, and the card's
        size."""
        first_panel = next(iter(self.panels.values()))
        widest_row = max(text_width(row) for row in first_panel)
        across = text_width(self.across, HEAD_FONT_SIZE)
        self.left_of_cells = max(widest_row, across) + 12
        self.panel_width = self.left_of_cells + self.columns * CELL_WIDTH
        self.panel_height = PANEL_HEAD + len(first_panel) * CELL_HEIGHT

        # The last panel of a line needs no space behind it.
        panel_step = self.panel_width + BETWEEN_PANELS
        most_side_by_side = (WIDTH - 2 * PAD + BETWEEN_PANELS) // panel_step
        self.side_by_side = max(1, int(most_side_by_side))

        lines = ceil(len(self.panels) / self.side_by_side)
        in_a_line = min(self.side_by_side, len(self.panels))
        width = in_a_line * self.panel_width + (in_a_line - 1) * BETWEEN_PANELS
        height = TITLE_HEIGHT + lines * (self.panel_height + BETWEEN_LINES)
        self.size = (round(2 * PAD + width), round(PAD + height + PAD))

    def drawing(self) -> str:
        elements = [title_at(self.title, PAD, PAD + 14)]
        for index, name in enumerate(self.panels):
            line, column = divmod(index, self.side_by_side)
            left = PAD + column * (self.panel_width + BETWEEN_PANELS)
            y = PAD + TITLE_HEIGHT + line * (self.panel_height + BETWEEN_LINES)
            elements.append(self._panel(name, left + self.left_of_cells, y))
        return "".join(elements)

    def _panel(self, name: str, left: float, y: float) -> str:
        """A panel whose cells begin at ``left``: its names, cells and splits."""
        rows = self.panels[name]
        top = y + PANEL_HEAD
        height, width = len(rows) * CELL_HEIGHT, self.columns * CELL_WIDTH
        elements = [text_at(name, left, y + 18, fill=INK, font_weight="600")]
        heads = {left - 8: (self.across, "end")}
        for column in range(self.columns):
            heads[left + (column + 0.5) * CELL_WIDTH] = (str(column), "middle")
        for x, (words, anchor) in heads.items():
            elements.append(
                text_at(words, x, top - 7, text_anchor=anchor, font_size=HEAD_FONT_SIZE)
            )
        for index, (row, values) in enumerate(rows.items()):
            row_y = top + index * CELL_HEIGHT
            elements.append(
                text_at(row, left - 8, row_y + 17, text_anchor="end", fill=INK)
            )
            for column, value in enumerate(values):
                elements.append(self._cell(value, left + column * CELL_WIDTH, row_y))
        for split in self.splits.get(name, ()):
            split_x = left + split * CELL_WIDTH
            elements.append(
                vertical_line(
                    split_x,
                    top - 18,
                    top + height,
                    kind="split",
                    stroke=INK,
                    stroke_width=1.5,
                )
            )
        frame = rectangle(left, top, width, height, fill="none", stroke="#c9c9c9")
        return "".join(elements) + frame

    def _cell(self, value: float, x: float, y: float) -> str:
        """A number on the colour that it stands for."""
        share = (value - self.low) / (1 - self.low)
        fill = shade(share)
        ground = rectangle(x, y, CELL_WIDTH, CELL_HEIGHT, kind="cell", fill=fill)
        number = centred(
            f"{value:.2f}",
            x + CELL_WIDTH / 2,
            y + 17,
            font_size=13,
            fill="#fff" if share < 0.4 else "#000",
        )
        return ground + number

    def __repr__(self) -> str:
        lines = [self.title]
        for name, rows in self.panels.items():
            for row, values in rows.items():
                numbers = " ".join(f"{value:.2f}" for value in values)
                lines.append(f"  {name}, {row}: {numbers}")
        return "\n".join(lines)


def common_length(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> int:
    """How many values every row has."""
    lengths = set()
    for rows in panels.values():
        lengths |= {len(values) for values in rows.values()}
    if len(lengths) != 1:
        raise BadValue(
            f"rows of a heat map have {sorted(lengths)} values: give all the "
            "same number"
        )
    return lengths.pop()


def low_end(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> float:
    """Where the scale begins: the lowest value, rounded down to tenths, or 0.9."""
    lowest_values = []
    for rows in panels.values():
        lowest_values += [min(values) for values in rows.values()]
    return min(floor(min(lowest_values) * 10) / 10, 0.9)


heat = Heat  # as lessons call it
