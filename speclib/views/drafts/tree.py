"""What one round of a tree was: its nodes, the way that the target followed, its own word.

Reads a trace. Knows no method, clock or notebook.
"""

from __future__ import annotations

from typing import NamedTuple
from xml.sax.saxutils import escape

from speclib.trace.events import Event
from speclib.views.svg import COLOURS, FONTS, INK, PAD, QUIET, WRITERS, n, tag, words
from speclib.views.text import FONT, fitting, label_of, shown, text_width
from speclib.views.timeline.facts import Run

WIDE, TOP, ROW, CELL = 1100, 102, 30, 24  # pixels: of all; above the rows; of a row
ROOT, MOST, APART = 26, 230, 40  # the text's end; a level's width; its edges'
STYLES = {
    "text": {"fill": INK},
    "passed": {"fill": WRITERS["draft"]},
    "unread": {"fill": QUIET},
    "failed": {"fill": COLOURS["rejected"], "text_decoration": "line-through"},
    "cut": {"fill": QUIET},
}


class Grown(NamedTuple):
    """One ``grow`` and what was committed after it; ``before`` was committed until then."""

    run: Run
    grow: Event
    commit: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def number(self) -> int:
        return self.grow.round

    @property
    def place(self) -> int:
        return len(self.before)

    @property
    def width(self) -> int:
        """The most nodes of a level."""
        levels = self.grow.depths
        return max(levels.count(level) for level in levels)

    @property
    def leaves(self) -> list[int]:
        """Nodes that nothing follows, in their order."""
        inner = set(self.grow.payload.parents)
        return [node for node in range(len(self.grow.tokens)) if node not in inner]

    @property
    def high(self) -> int:
        return TOP + ROW * (len(self.leaves) + 1) + PAD

    def text(self) -> list[tuple[str, str]]:
        return [("text", shown(self.run.piece(token))) for token in self.before]

    def said(self) -> str:
        """How large the tree is."""
        levels = max(self.grow.depths) + 1
        return (
            f"a tree of {len(self.grow.tokens)}: {levels} level{'s' * (levels > 1)}, at most "
            f"{self.width} wide"
        )

    def verdict(self) -> str:
        """How far the target followed it."""
        passed, levels = self.grow.outcome.count("accepted"), max(self.grow.depths) + 1
        if len(self.commit) <= passed:
            return f"the target follows it for {passed} of {levels} levels, to the text's end"
        own = label_of(self.run.piece(self.commit[-1]))
        return f"the target follows it for {passed} of {levels} levels, then writes “{own}”"

    def kind(self, node: int) -> str:
        """accepted, rejected, or dropped: not on the way."""
        outcome = self.grow.outcome[node]
        return "dropped" if outcome == "wasted" else outcome

    def label(self, node: int) -> str:
        """Its text; with its blanks where a sibling differs in them alone."""
        pieces = [self.run.piece(token) for token in self.grow.tokens]
        others = [
            pieces[i]
            for i, parent in enumerate(self.grow.payload.parents)
            if parent == self.grow.payload.parents[node] and i != node
        ]
        told = label_of(pieces[node])
        return pieces[node].replace(" ", "·") if told in map(label_of, others) else told

    def lines(self) -> list[str]:
        """In words: a line per node, a star where the way leads."""
        return [
            f"round {self.number}: {self.said()}",
            *(
                f"  {'  ' * level}{'*' if self.kind(node) == 'accepted' else '-'} {self.label(node)}"
                for node, level in enumerate(self.grow.depths)
            ),
            self.verdict(),
        ]


def head(title: str, note: str, text: list[tuple[str, str]]) -> str:
    """The round; under it the text, its end still to be checked."""
    told = tag("tspan", escape(f"\u00a0 {note}"), fill=QUIET, font_weight="400")
    top = tag(
        "text",
        title + told,
        x=PAD,
        y=PAD + 14,
        font_size=17,
        font_weight="600",
        fill=INK,
    )
    spans = "".join(
        tag("tspan", escape(part), **STYLES[kind])
        for kind, part in fitting(text, WIDE - 2 * PAD)
    )
    return top + tag("text", spans, x=PAD, y=PAD + 40)


def level_of(shown: Grown) -> float:
    """Pixels of a level."""
    return min(MOST, (WIDE - PAD - ROOT) / (max(shown.grow.depths) + 1))


def places(shown: Grown) -> list[tuple[float, float]]:
    """The left edge and the middle of each node's cell, pixels; a line of first candidates is
    straight, since a node stands in the row of the first leaf that it leads to."""
    rows: dict[int, int] = {}
    for row, leaf in enumerate(shown.leaves):
        node = leaf
        while node >= 0 and node not in rows:
            rows[node], node = row, shown.grow.payload.parents[node]
    each = level_of(shown)
    return [
        (ROOT + APART + level * each, TOP + ROW * rows[node] + CELL / 2)
        for node, level in enumerate(shown.grow.depths)
    ]


def draw(shown: Grown) -> str:
    """SVG of one round."""
    grow, at, edges, nodes = shown.grow, places(shown), [], []
    room = level_of(shown) - APART - 12
    labels = [cut(shown.label(node), room) for node in range(len(grow.tokens))]
    wide = [max(26, text_width(label) + 12) for label in labels]
    for node, parent in enumerate(grow.payload.parents):
        (x, y), kind = at[node], shown.kind(node)
        start = (
            (ROOT, TOP + CELL / 2)
            if parent < 0
            else (at[parent][0] + wide[parent], at[parent][1])
        )
        edges.append((kind == "accepted", edge(*start, x, y, kind == "accepted")))
        struck = {"text_decoration": "line-through"} if kind == "rejected" else {}
        nodes += [
            tag(
                "rect",
                cls=kind,
                x=n(x),
                y=n(y - CELL / 2),
                width=n(wide[node]),
                height=CELL,
                rx=3,
                fill=COLOURS[kind],
            ),
            words(
                labels[node],
                x + wide[node] / 2,
                y + 5,
                text_anchor="middle",
                fill=INK if kind == "dropped" else "#000",
                **struck,
            ),
        ]
    y = TOP + ROW * len(shown.leaves) + CELL / 2
    nodes += [
        tag("circle", cx=ROOT, cy=n(TOP + CELL / 2), r=5, fill=INK),
        words(
            shown.verdict(),
            ROOT + APART,
            y + 5,
            fill=WRITERS["target"],
            font_weight="600",
        ),
    ]
    card = tag("rect", width=WIDE, height=shown.high, rx="8", fill="#fff")
    body = "".join(drawn for _, drawn in sorted(edges)) + "".join(
        nodes
    )  # the way on top
    return tag(
        "svg",
        card + head(f"round {shown.number}", shown.said(), shown.text()) + body,
        xmlns="http://www.w3.org/2000/svg",
        width=WIDE,
        height=shown.high,
        viewBox=f"0 0 {WIDE} {shown.high}",
        font_family=FONTS,
        font_size=FONT,
        fill=QUIET,
        style="max-width:100%;height:auto",
    )


def edge(x0: float, y0: float, x: float, y: float, followed: bool) -> str:
    """From a node's end down to the row of the next, then straight."""
    style = (
        {"stroke": INK, "stroke_width": 2.5}
        if followed
        else {"stroke": "#c9c9c9", "stroke_width": 1.5}
    )
    way = f"M{n(x0)} {n(y0)}C{n(x0 + 22)} {n(y0)} {n(x0 + 6)} {n(y)} {n(x0 + 28)} {n(y)}H{n(x)}"
    return tag("path", cls="edge", d=way, fill="none", **style)


def cut(label: str, room: float) -> str:
    """``label``, its end replaced by dots where it is wider than ``room`` pixels."""
    if text_width(label) <= room:
        return label
    while label and text_width(label + "…") > room:
        label = label[:-1]
    return label + "…"
