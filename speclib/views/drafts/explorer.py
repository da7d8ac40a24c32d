"""What a draft wrote at once, round by round: a tree that follows a slider.

Of sequences, from the text's end a branch per sequence: what the draft gave its first word, with
the threshold theta, then its words, and which sequence the target's own word chose. Of a tree, see
``trees``. Knows no method and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import ipywidgets as widgets

from speclib.errors import SpeclibError
from speclib.views.svg import (
    COLOURS,
    FONTS,
    INK,
    PAD,
    QUIET,
    WRITERS,
    n,
    patterns,
    tag,
    words,
)
from speclib.views.text import FONT, label_of, text_width
from speclib.views.timeline.facts import run_of
from speclib.views.widgets.controls import box
from speclib.views.widgets.shown import Shown

from .rounds import Round, rounds_of
from .tree import Grown, head
from .tree import draw as tree

WIDE, TOP, ROW, CELL = 1100, 102, 34, 26  # pixels: of all; above the rows; of a row
FORK, BARS, LONG, CELLS = 26, 84, 250, 410  # where things begin; a bar of chance 1


def cells(shown: Round, row: int, y: float, name: str) -> str:
    """A sequence, as far as there is room for it; outlined where it goes on."""
    branch, taken = shown.branch, shown.branch.payload.chosen(shown.branch)
    tokens, x, drawn = branch.sequences[row], float(CELLS), []
    for i, token in enumerate(tokens):
        label = label_of(shown.run.piece(token))
        kind = (
            branch.outcome[row * len(tokens) + i] if row == (taken or 0) else "dropped"
        )
        wide = max(26, text_width(label) + 12)
        if x + wide > WIDE - PAD - 40:
            drawn.append(words(f"+ {len(tokens) - i}", x + 6, y + CELL / 2 + 5))
            break
        fill = f"url(#{name}-wasted)" if kind == "wasted" else COLOURS[kind]
        struck = {"text_decoration": "line-through"} if kind == "rejected" else {}
        drawn += [
            tag(
                "rect",
                cls=kind,
                x=n(x),
                y=n(y),
                width=n(wide - 2),
                height=CELL,
                fill=fill,
            ),
            words(
                label,
                x + wide / 2 - 1,
                y + CELL / 2 + 5,
                text_anchor="middle",
                fill=INK if kind == "dropped" else "#000",
                **struck,
            ),
        ]
        x += wide
    frame = tag(
        "rect",
        cls="chosen",
        x=CELLS - 3,
        y=n(y - 3),
        width=n(x - CELLS + 4),
        height=CELL + 6,
        rx=4,
        fill="none",
        stroke=INK,
        stroke_width=2,
    )
    return "".join(drawn) + frame * (row == taken)


def limb(y: float, middle: float, chance: float, fill: str) -> str:
    """From the text's end to a bar as long as the chance, and its number."""
    at = y + CELL / 2
    curve = f"M{FORK} {n(middle)}C{FORK + 34} {n(middle)} {FORK + 24} {n(at)} {BARS} {n(at)}"
    return (
        tag("path", d=curve, fill="none", stroke=QUIET, stroke_width=1.5)
        + tag(
            "rect",
            cls="chance",
            x=BARS,
            y=n(y + 3),
            width=n(max(chance * LONG, 1)),
            height=CELL - 6,
            fill=fill,
        )
        + words(f"{chance:.3f}", CELLS - 22, at + 5, text_anchor="end", fill=INK)
    )


def draw(shown: Round) -> str:
    """SVG of one round."""
    name, chances = f"t{crc32(repr(shown).encode()):08x}", shown.branch.payload.chances
    middle, body = TOP + ROW * len(chances) / 2 - (ROW - CELL) / 2, []
    for row, chance in enumerate(chances):
        y = TOP + ROW * row
        body += [limb(y, middle, chance, WRITERS["draft"]), cells(shown, row, y, name)]
    y, theta = TOP + ROW * len(chances), shown.branch.payload.threshold
    body += [
        limb(y, middle, 1 - sum(chances), "#c9c9c9"),
        words("all other words together", CELLS, y + CELL / 2 + 5),
        tag("circle", cx=FORK, cy=n(middle), r=5, fill=INK),
    ]
    if theta:
        x = BARS + theta * LONG
        body += [
            tag(
                "line",
                cls="theta",
                x1=n(x),
                x2=n(x),
                y1=TOP - 4,
                y2=n(y + CELL + 2),
                stroke=COLOURS["rejected"],
                stroke_width=2,
                stroke_dasharray="5 3",
            ),
            words(
                "θ", x, y + CELL + 18, text_anchor="middle", fill=COLOURS["rejected"]
            ),
        ]
    high = height(len(chances))
    body.append(
        words(
            shown.verdict(),
            CELLS,
            y + ROW + CELL / 2 + 5,
            fill=WRITERS["target"],
            font_weight="600",
        )
    )
    body += [
        words("its chance for the draft", BARS, TOP - 10),
        words("the sequences", CELLS, TOP - 10),
    ]
    card = tag("rect", width=WIDE, height=high, rx="8", fill="#fff")
    top = head(f"round {shown.number}", shown.said(), shown.text())
    return tag(
        "svg",
        patterns(name) + card + top + "".join(body),
        xmlns="http://www.w3.org/2000/svg",
        width=WIDE,
        height=high,
        viewBox=f"0 0 {WIDE} {high}",
        font_family=FONTS,
        font_size=FONT,
        fill=QUIET,
        style="max-width:100%;height:auto",
    )


def height(rows: int) -> int:
    return TOP + ROW * (rows + 2) + PAD


def high(shown: Round | Grown) -> int:
    """Pixels."""
    return (
        shown.high if isinstance(shown, Grown) else height(len(shown.branch.sequences))
    )


class Sequences(Shown, widgets.VBox):
    """A slider over the rounds of a run, above the tree of each. ``shown``: a result or trace, or
    several by the value of what they differ in, which ``by`` names: then a second slider chooses
    among them, and the round of the next run is the one nearest in the text. ``round``: the first
    one shown; left out, the one that is widest. Raises SpeclibError for a run without sequences or
    trees, or a round that is not there."""

    def __init__(self, shown, round: int | None = None, by: str = "run"):
        runs = dict(shown) if isinstance(shown, Mapping) else {"": shown}
        if not runs:
            raise SpeclibError("a tree of nothing: pass at least one result or trace")
        self.rounds = {value: rounds_of(run_of(run)) for value, run in runs.items()}
        self.highest = max(high(r) for rounds in self.rounds.values() for r in rounds)
        first = next(iter(self.rounds.values()))
        at = max(first, key=lambda r: r.width).number if round is None else round
        known = [r.number for r in first]
        if at not in known:
            raise SpeclibError(
                f"round is {at}: this run drafted in rounds {known[0]} to {known[-1]}"
            )
        self.slider = widgets.SelectionSlider(
            options=known, value=at, description="round", layout={"width": "420px"}
        )
        self.chooser = widgets.SelectionSlider(
            options=list(self.rounds), description=by, layout={"width": "340px"}
        )
        self.image = widgets.HTML()
        self._moved()
        self.slider.observe(self._moved, "value")
        self.chooser.observe(self._chosen, "value")
        sliders = {"round": self.slider} | ({by: self.chooser} if len(runs) > 1 else {})
        super().__init__([box(sliders), self.image])

    @property
    def round(self) -> Round | Grown:
        return next(
            r for r in self.rounds[self.chooser.value] if r.number == self.slider.value
        )

    @property
    def size(self) -> tuple[int, int]:
        return WIDE, high(self.round)

    def picture(self) -> str:
        return (tree if isinstance(self.round, Grown) else draw)(self.round)

    def _moved(self, _=None) -> None:
        """As high as the highest, so that nothing jumps."""
        self.image.value = (
            f'<div style="min-height: {self.highest}px">{self.picture()}</div>'
        )

    def _chosen(self, change) -> None:
        place = next(
            r.place for r in self.rounds[change["old"]] if r.number == self.slider.value
        )
        near = min(self.rounds[change["new"]], key=lambda r: abs(r.place - place))
        self.slider.options = [r.number for r in self.rounds[change["new"]]]
        self.slider.value = near.number
        self._moved()

    def text(self) -> str:
        of = f"{self.chooser.description} = {self.chooser.value}: " * (
            len(self.rounds) > 1
        )
        return "\n".join(
            [
                f"tree, {of}{len(self.rounds[self.chooser.value])} rounds",
                *self.round.lines(),
            ]
        )


def sequences(shown, round: int | None = None, by: str = "run") -> Sequences:
    """The sequences of a run of duodecoding, or the trees of one of tree or easyspec, round by
    round, following sliders; see Sequences."""
    return Sequences(shown, round, by)
