"""Shows all outcomes of a tested draft, with heights proportional to probability.

    drafted     tested      written            sum, and p
    ┌──────┬─────────┬─────────────┐
    │      │accepted │ a           │          a ███████ |
    │  a   ├─────────┼─────────────┤
    │      │rejected │ b           │          b ████ |
    ├──────┼─────────┼─────────────┤
    │  b   │accepted │ b           │
    └──────┴─────────┴─────────────┘

A height is the joint probability of all coins along a path. A sum that differs from the
target's probability has a different colour and stripes, and its label shows
the difference. This module uses probabilities, and no method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speclab.views.shapes import centred, dots
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    card,
    hatch,
    rectangle,
    rejected_hatch,
    tag,
    text_at,
    unique_name,
    vertical_line,
)

from .live_picture import LivePicture

HEIGHT = 400.0
TOP, COLUMN = 54.0, 320.0  # pixels above the columns, and for a probability of 1
TREE_SHARE = 0.58  # the columns' share of the width; the bars take up the rest
HEADINGS = ("drafted", "tested", "written")
LEAST_LABEL = 17.0  # minimum height for a label, in pixels
SAME = 1e-9  # probabilities that differ by less count as equal


class Branch(NamedTuple):
    """The possible outcomes of one drafted token.

    drafted      the token
    probability  the probability that it is drafted
    accepted     the probability that it is drafted and accepted
    replaced     for each token, the probability that it is written instead
    """

    drafted: str
    probability: float
    accepted: float
    replaced: tuple[float, ...]


class OutcomeTreePicture(LivePicture):
    """The columns and bars of some branches; ``p``: the target's probabilities."""

    called = "All outcomes of a tested draft, and their sums"

    def __init__(
        self, branches: Sequence[Branch], tokens: Sequence[str], p: Sequence[float]
    ):
        self.branches = branches
        self.tokens = tokens
        self.p = p
        super().__init__()

    def show(self, branches: Sequence[Branch]) -> None:
        """Shows other branches over the same tokens."""
        self.branches = branches
        self.draw()

    @property
    def sums(self) -> list[float]:
        """The probability that each token is written."""
        sums = [0.0] * len(self.tokens)
        for branch in self.branches:
            sums[self.tokens.index(branch.drafted)] += branch.accepted
            for token, share in enumerate(branch.replaced):
                sums[token] += share
        return sums

    @property
    def wrong(self) -> list[int]:
        """The tokens whose probability differs from the target's."""
        sums = self.sums
        return [i for i, p in enumerate(self.p) if abs(sums[i] - p) > SAME]

    # -- words -------------------------------------------------------------------------
    def sentence(self) -> str:
        sums, wrong = self.sums, self.wrong
        if not wrong:
            return "Every token is written with exactly the target model's probability."
        parts = []
        for token in wrong:
            parts.append(
                f"“{self.tokens[token]}” has {sums[token]:.4f} instead of "
                f"{self.p[token]:.4f}"
            )
        return f"Wrong probabilities: {', '.join(parts)}."

    def text(self) -> str:
        lines = [f"outcome tree: {self.sentence()}"]
        for branch in self.branches:
            lines.append(
                f"  drafted {branch.drafted} {branch.probability:.4f}: "
                f"accepted {branch.accepted:.4f}"
            )
        return "\n".join(lines)

    @property
    def size(self) -> tuple[int, int]:
        return 900, round(HEIGHT)

    # -- the picture -------------------------------------------------------------------
    def drawing(self, width: float) -> str:
        name = unique_name("t", (self.branches, width))
        patterns = tag(
            "defs",
            rejected_hatch(f"{name}-rejected")
            + hatch(f"{name}-wrong", "#D55E00", "#7a2f00", 6)
            + dots(f"{name}-replaced", KIND_COLOURS["score"]),
        )
        tree_width = TREE_SHARE * width - PAD
        body = self._columns(tree_width / 3, name)
        body += self._bars(PAD + tree_width + 30, width - tree_width - 46 - PAD, name)
        return card(body, width, HEIGHT, definitions=patterns)

    def _columns(self, step: float, name: str) -> str:
        """The columns drafted, tested and written, with paths from left to right."""
        elements = []
        for column, heading in enumerate(HEADINGS):
            x = PAD + step * (column + 0.5)
            elements.append(centred(heading, x, 26, font_size=16))
        y = TOP
        for branch in self.branches:
            elements.append(self._branch(branch, y, step, name))
            y += branch.probability * COLUMN
        return "".join(elements)

    def _branch(self, branch: Branch, y: float, step: float, name: str) -> str:
        """The paths that begin with one drafted token."""
        height = branch.probability * COLUMN
        accepted = branch.accepted * COLUMN
        rejected = height - accepted
        second, third = PAD + step, PAD + 2 * step
        green = KIND_COLOURS["accepted"]
        stripes = f"url(#{name}-rejected)"
        elements = [
            _box(PAD, y, step, height, "#e8e8e8", branch.drafted),
            _box(second, y, step, accepted, green, "accepted"),
            _box(second, y + accepted, step, rejected, stripes, "rejected"),
            _box(third, y, step, accepted, green, branch.drafted),
        ]
        y += accepted
        for token, share in enumerate(branch.replaced):
            height = share * COLUMN
            fill = f"url(#{name}-replaced)"
            elements.append(_box(third, y, step, height, fill, self.tokens[token]))
            y += height
        return "".join(elements)

    def _bars(self, left: float, width: float, name: str) -> str:
        """A bar for the sum of each token's paths, with a line at p."""
        sums, wrong = self.sums, self.wrong
        highest = max(*sums, *self.p)
        heading = "sum of its paths; the line is p"
        elements = [text_at(heading, left, 26, fill=INK, font_size=16)]
        step = COLUMN / len(self.tokens)
        for token, word in enumerate(self.tokens):
            y = TOP + step * token + 26
            found, wanted = sums[token], self.p[token]
            is_wrong = token in wrong
            fill = f"url(#{name}-wrong)" if is_wrong else "#7a7a7a"
            label = f"{word}: {found:.4f}"
            if is_wrong:
                label += f", p is {wanted:.4f} ({found - wanted:+.4f})"
            x = left + wanted / highest * width
            elements += [
                text_at(label, left, y - 6, fill=INK),
                rectangle(
                    left,
                    y,
                    found / highest * width,
                    0.45 * step,
                    fill=fill,
                    kind="wrong" if is_wrong else "sum",
                ),
                vertical_line(
                    x, y - 4, y + 0.45 * step + 4, stroke=INK, stroke_width=3
                ),
            ]
        return "".join(elements)


def _box(x: float, y: float, width: float, height: float, fill: str, label: str) -> str:
    """A part of a column, with its label if it fits."""
    if height <= 0:
        return ""
    tip = f"{label}: {height / COLUMN:.4f}"
    box = rectangle(
        x, y, width, height, fill=fill, stroke=INK, stroke_width=0.75, tip=tip
    )
    if height < LEAST_LABEL:
        return box
    middle, label_width = x + width / 2, 9.0 * len(label) + 10
    plate = rectangle(
        middle - label_width / 2,
        y + height / 2 - 9,
        label_width,
        18,
        fill="#fff",
        fill_opacity=0.9,
    )
    word = centred(label, middle, y + height / 2 + 5)
    return box + plate + word
