"""The heading, verdict and labels that all pictures of drafts share."""

from __future__ import annotations

from xml.sax.saxutils import escape

from speclab.views.shapes import centred
from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    PAD,
    QUIET,
    WRITER_COLOURS,
    card,
    hatch_patterns,
    tag,
    text_at,
    unique_name,
)
from speclib.drawing.text_in_pictures import end_that_fits, text_width

from .draft_rounds import DraftedRound

# Pixels.
WIDTH = 1100
ROWS_TOP = 102  # the heading is above it

TEXT_STYLES = {
    "text": {"fill": INK},
    "accepted": {"fill": WRITER_COLOURS["draft"]},
    "unread": {"fill": QUIET},
    "rejected": {"fill": KIND_COLOURS["rejected"], "text_decoration": "line-through"},
    "cut": {"fill": QUIET},
}


def heading(drafted: DraftedRound) -> str:
    """The round's number and summary, and below them the text before the draft.

    Only the end of the text is shown, as much as fits on one line.
    """
    summary = tag(
        "tspan", escape(f"\u00a0 {drafted.summary()}"), fill=QUIET, font_weight="400"
    )
    title = tag(
        "text",
        f"round {drafted.number}{summary}",
        x=PAD,
        y=PAD + 14,
        font_size=17,
        font_weight="600",
        fill=INK,
    )

    spans = []
    for kind, part in end_that_fits(drafted.text(), WIDTH - 2 * PAD):
        spans.append(tag("tspan", escape(part), **TEXT_STYLES[kind]))
    text = tag("text", "".join(spans), x=PAD, y=PAD + 40)
    return title + text


def finished(
    drafted: DraftedRound, body: str, height: int, verdict_at: tuple[float, float]
) -> str:
    """The SVG of a round: heading, ``body`` and verdict, from top to bottom."""
    x, y = verdict_at
    colour = WRITER_COLOURS["target"]
    verdict = text_at(drafted.verdict(), x, y, fill=colour, font_weight="600")
    patterns = hatch_patterns(patterns_of(drafted))
    return card(heading(drafted) + body + verdict, WIDTH, height, definitions=patterns)


def patterns_of(drafted: DraftedRound) -> str:
    """The name of the picture's patterns."""
    return unique_name("t", drafted)


def cell_width(label: str) -> float:
    """The width of a cell with ``label``, in pixels."""
    return max(26, text_width(label) + 12)


def text_in_cell(label: str, x: float, y: float, outcome: str) -> str:
    """A drafted token's text, centred at ``x``, and struck through if rejected."""
    style = {"text_decoration": "line-through"} if outcome == "rejected" else {}
    return centred(label, x, y, fill=INK if outcome == "dropped" else "#000", **style)
