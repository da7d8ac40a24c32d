"""The picture at the head of the index: how fast the abstracts say it is, and is here.

A row per headline claim, on one logarithmic axis. In a wide picture a row is::

    what is claimed      |    o   |                | ✓ 2.39   – none   ✗ 1.91
    where it stands      |  |-[]-||                |
                         1       claim      4        virtual emulated measured

and in a narrow one the three parts stand below each other; on a phone the verdicts do,
too. Each kind of number has its
own shape and its own height in the row, each verdict its own sign. Knows no table and
no run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log
from typing import NamedTuple
from xml.sax.saxutils import escape

from speclab.papers.paper_schema import ENGINE_KINDS
from speclab.papers.verdicts import OTHER_HARDWARE
from speclab.views.shapes import GRID, circle, point
from speclib.drawing.numbers import number
from speclib.drawing.svg import (
    INK,
    PAD,
    QUIET,
    card,
    coordinate,
    horizontal_line,
    rectangle,
    tag,
    text_at,
    vertical_line,
)
from speclib.drawing.text_in_pictures import text_width

from .entry import ClaimEntry, Judged, PaperEntry
from .places import Link

WIDE = 1300  # pixels; narrower pages show the narrow picture
NARROW = 640
PHONE = 360

# Dark enough to be told from white by everybody; the shapes differ, too.
COLOURS = {"virtual": "#0072B2", "emulated": "#00795a", "measured": "#b84a00"}
BAND = "#dfe3e8"
LINK = "#0b5cad"


class Sign(NamedTuple):
    """How the picture shows a verdict: in which colour, and what it is called."""

    colour: str
    words: str


SIGNS = {
    "yes": Sign("#00795a", "holds"),
    "no": Sign("#b3261e", "does not hold"),
    "open": Sign("#8a5a00", "open: not settled yet"),
    "not judged": Sign(QUIET, "not judged"),
}

FONT = 15
SMALL = 14
LINE = 19  # from one line of text to the next
STRIP = 54  # height of a row's piece of the axis
LANES = {"virtual": 10, "emulated": 27, "measured": 44}  # from the strip's upper edge
LABEL_WIDTH = 430
VERDICT_WIDTH = 104
VERDICT_LINE = 26  # from one verdict to the next where they stand below each other
ROW_GAP = 18
TICKS = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)
MARGIN = 1.06  # of the axis beyond its lowest and highest number, as a factor
LEGEND_GAP = 24
TICK_DISTANCE = 30  # pixels between two labels of the axis, at least


class Row(NamedTuple):
    """A headline claim, and the paper that makes it."""

    paper: PaperEntry
    claim: ClaimEntry


class Axis(NamedTuple):
    """A logarithmic axis: the numbers at its ends, and where they are."""

    low: float
    high: float
    left: float
    right: float

    def x(self, value: float) -> float:
        share = log(value / self.low) / log(self.high / self.low)
        return self.left + share * (self.right - self.left)

    @property
    def ticks(self) -> list[float]:
        return [tick for tick in TICKS if self.low <= tick <= self.high]


def headline_rows(papers: Sequence[PaperEntry]) -> list[Row]:
    """The headline claims of all papers that expect a number."""
    rows = []
    for paper in papers:
        for claim in paper.claims:
            if claim.is_headline and claim.claimed > 0:
                rows.append(Row(paper, claim))
    return rows


def caption(rows: Sequence[Row]) -> str:
    """What the picture shows, and how many of its claims hold, in words."""
    counts = []
    for kind in ENGINE_KINDS:
        text = _count_in_words(rows, kind)
        if text:
            counts.append(text)
    how_many = "one claim" if len(rows) == 1 else f"{len(rows)} claims"
    sentences = [
        f"What the abstracts say about speed, in {how_many}.",
        "The black bar is the printed number, and the grey band around it is how far "
        "from it we still say that the claim holds.",
        "A line through a mark is its 95 % interval.",
        *counts,
    ]
    measured = [row.claim.verdicts.get("measured") for row in rows]
    notes = [verdict.line.note for verdict in measured if verdict]
    if any(note and OTHER_HARDWARE.endswith(note) for note in notes):
        sentences.append(
            "Measured numbers without a verdict are of other models and hardware than "
            "the paper's."
        )
    return " ".join(sentences)


def _count_in_words(rows: Sequence[Row], kind: str) -> str:
    """What became of the claims: "By virtual numbers 5 of 7 hold, 2 do not." """
    verdicts = [row.claim.verdicts.get(kind) for row in rows]
    holds = [verdict.line.holds for verdict in verdicts if verdict]
    counted = {sign: holds.count(sign) for sign in ("yes", "no", "open")}
    judged = sum(counted.values())
    if not judged:
        return ""

    text = f"By {kind} numbers {counted['yes']} of {judged} hold"
    if counted["no"]:
        text += f", {counted['no']} do{'es' if counted['no'] == 1 else ''} not"
    if counted["open"]:
        text += f", {counted['open']} {'is' if counted['open'] == 1 else 'are'} open"
    return f"{text}."


# -- the whole picture -----------------------------------------------------------------
def render_headlines(rows: Sequence[Row], link: Link, width: float = WIDE) -> str:
    """SVG of the headline claims; ``link`` says where a claim's table is."""
    if width < WIDE:
        axis = _axis(rows, PAD + 10, width - PAD - 10)
        draw_row = _draw_narrow_row
    else:
        right = width - PAD - len(ENGINE_KINDS) * VERDICT_WIDTH - 20
        axis = _axis(rows, PAD + LABEL_WIDTH + 24, right)
        draw_row = _draw_wide_row

    legend, y = _draw_legend(rows, width)
    elements = [legend]
    if width >= WIDE:
        elements.append(_draw_heads(axis, y))
        y += LINE + 8

    for row in rows:
        drawn, height = draw_row(row, axis, y, width, link)
        elements.append(tag("g", drawn, cls="headline"))
        y += height + ROW_GAP

    y -= ROW_GAP - 6
    if width >= WIDE:
        elements.append(_draw_tick_labels(axis, y + 14))
        y += LINE
    title = "times as fast as what the claim compares with (logarithmic)"
    middle = (axis.left + axis.right) / 2
    style = {"text_anchor": "middle", "font_size": SMALL, "fill": INK}
    for line in _wrap(title, axis.right - axis.left):
        y += LINE
        elements.append(text_at(line, middle, y, **style))
    return card("".join(elements), width, y + PAD)


def _axis(rows: Sequence[Row], left: float, right: float) -> Axis:
    """An axis that covers every number of every row, and 1: no gain."""
    values = [1.0]
    for row in rows:
        claimed, within = row.claim.claimed, row.claim.claim.within
        values += [claimed * (1 - within), claimed * (1 + within)]
        for kind in ENGINE_KINDS:
            values += _numbers_of(row.claim.verdicts.get(kind))
    positive = [value for value in values if value > 0]
    return Axis(min(positive) / MARGIN, max(positive) * MARGIN, left, right)


def _numbers_of(judged: Judged | None) -> list[float]:
    """The number that a verdict is about, and the ends of its interval.

    Those that a logarithmic axis can show.
    """
    if judged is None or judged.number is None or not 0 < judged.number.value < inf:
        return []
    ends = [end for end in judged.interval or () if 0 < end < inf]
    return [judged.number.value, *ends]


# -- rows ------------------------------------------------------------------------------
def _draw_wide_row(
    row: Row, axis: Axis, y: float, width: float, link: Link
) -> tuple[str, float]:
    """The label, the numbers and the verdicts beside each other; and their height."""
    label, label_height = _draw_label(row, y, LABEL_WIDTH, link)
    height = max(label_height, STRIP)
    top = y + (height - STRIP) / 2
    strip = _draw_strip(row.claim, axis, top)
    verdicts = []
    for index, kind in enumerate(ENGINE_KINDS):
        x = axis.right + 20 + index * VERDICT_WIDTH
        verdicts.append(_draw_verdict(row, kind, x, y + height / 2))
    return label + strip + "".join(verdicts), height


def _draw_narrow_row(
    row: Row, axis: Axis, y: float, width: float, link: Link
) -> tuple[str, float]:
    """The label, below it the numbers, below them the verdicts; and their height."""
    label, label_height = _draw_label(row, y, width - 2 * PAD, link)
    top = y + label_height + 6
    strip = _draw_strip(row.claim, axis, top)
    ticks = _draw_tick_labels(axis, top + STRIP + 15)

    verdicts = []
    verdict_y = top + STRIP + 38
    is_phone = width < NARROW
    step = (width - 2 * PAD) / len(ENGINE_KINDS)
    for index, kind in enumerate(ENGINE_KINDS):
        x = PAD if is_phone else PAD + index * step
        name = text_at(kind, x, verdict_y + 5, font_size=FONT, fill=COLOURS[kind])
        shift = VERDICT_WIDTH if is_phone else text_width(kind, FONT) + 8
        verdicts.append(name + _draw_verdict(row, kind, x + shift, verdict_y))
        if is_phone:
            verdict_y += VERDICT_LINE
    bottom = verdict_y - VERDICT_LINE if is_phone else verdict_y
    return label + strip + ticks + "".join(verdicts), bottom + 12 - y


def _draw_label(row: Row, y: float, width: float, link: Link) -> tuple[str, float]:
    """What is claimed, and where; its height."""
    claim = row.claim.claim
    lines = _wrap(claim.text, width)
    elements = []
    baseline = y + FONT
    for line in lines:
        elements.append(
            text_at(line, PAD, baseline, font_size=FONT, font_weight="600", fill=INK)
        )
        baseline += LINE

    address = link(row.paper.paper.key, row.claim.anchor)
    paper = row.paper.name
    item = row.claim.item.replace("-", " ").capitalize()
    linked_item = escape(item)
    if address:
        link_text = tag("tspan", linked_item, fill=LINK, text_decoration="underline")
        linked_item = tag("a", link_text, href=address)
    source = f"claimed in the {claim.source}" if claim.source else ""
    text = escape(f"{paper} · ") + linked_item
    further_lines = []
    if source and text_width(f"{paper} · {item} · {source}", SMALL) <= width:
        text += escape(f" · {source}")
    elif source:
        further_lines = _wrap(source, width)
    elements.append(tag("text", text, x=PAD, y=baseline, font_size=SMALL, fill=QUIET))
    for line in further_lines:
        baseline += LINE
        elements.append(text_at(line, PAD, baseline, font_size=SMALL, fill=QUIET))
    return "".join(elements), baseline + 5 - y


def _wrap(text: str, width: float) -> list[str]:
    """The text in lines that are not wider than ``width`` pixels."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, FONT) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _draw_strip(claim: ClaimEntry, axis: Axis, top: float) -> str:
    """A row's piece of the axis: the claim as a bar and its band, a mark per kind."""
    elements = []
    for tick in axis.ticks:
        is_no_gain = tick == 1
        stroke = "#8b919c" if is_no_gain else GRID
        elements.append(vertical_line(axis.x(tick), top, top + STRIP, stroke=stroke))

    claimed, within = claim.claimed, claim.claim.within
    band_left = axis.x(max(axis.low, claimed * (1 - within)))
    band_right = axis.x(claimed * (1 + within))
    tip = f"claimed: {claimed:g}, within {100 * within:g} %"
    elements.append(
        rectangle(band_left, top, band_right - band_left, STRIP, fill=BAND, tip=tip)
    )
    bar_x = axis.x(claimed)
    elements.append(rectangle(bar_x - 2, top, 4, STRIP, fill=INK, kind="claimed"))

    for kind in ENGINE_KINDS:
        judged = claim.verdicts.get(kind)
        if judged is not None and _numbers_of(judged):
            elements.append(_draw_number(judged, axis, top + LANES[kind]))
    return "".join(elements)


def _draw_number(judged: Judged, axis: Axis, y: float) -> str:
    """The mark of a number with its interval."""
    kind, ends = judged.line.kind, _numbers_of(judged)
    colour = COLOURS[kind]
    elements = []
    if len(ends) == 3:
        left, right = axis.x(ends[1]), axis.x(ends[2])
        elements.append(horizontal_line(y, left, right, stroke=colour, stroke_width=2))
        for x in (left, right):
            elements.append(
                vertical_line(x, y - 5, y + 5, stroke=colour, stroke_width=2)
            )
    mark = _mark_of_kind(kind, axis.x(ends[0]), y)
    tip = ", ".join(filter(None, [f"{kind}: {number(ends[0])}", judged.sure]))
    title = tag("title", escape(tip))
    elements.append(tag("g", title + mark, cls=kind))
    return "".join(elements)


def _draw_tick_labels(axis: Axis, y: float) -> str:
    """The labels of the axis; those that would touch the one before are left out."""
    labels = []
    free_from = 0.0
    for tick in axis.ticks:
        x = axis.x(tick)
        is_near_1 = tick < 1 and axis.x(1) - x < TICK_DISTANCE
        if x < free_from or is_near_1:
            continue
        free_from = x + TICK_DISTANCE
        labels.append(text_at(f"{tick:g}", x, y, text_anchor="middle", font_size=SMALL))
    return "".join(labels)


# -- verdicts --------------------------------------------------------------------------
def _draw_verdict(row: Row, kind: str, x: float, y: float) -> str:
    """The sign of a verdict and, beside it, the number that was judged."""
    judged = row.claim.verdicts.get(kind)
    if judged is None:
        return text_at("–", x + 4, y + 5, font_size=FONT)
    holds = judged.line.holds
    sign = SIGNS[holds]
    title = tag("title", escape(f"{kind}: {sign.words}"))
    mark = _mark_of_verdict(holds, x + 10, y)
    text = number(judged.number.value) if judged.number else judged.line.value
    words = text_at(
        text, x + 26, y + 5, font_size=FONT, font_weight="600", fill=sign.colour
    )
    return tag("g", title + mark + words, cls=f"verdict {holds.replace(' ', '-')}")


def _draw_heads(axis: Axis, y: float) -> str:
    """The names of the kinds above their verdicts."""
    heads = []
    for index, kind in enumerate(ENGINE_KINDS):
        x = axis.right + 20 + index * VERDICT_WIDTH
        heads.append(
            text_at(
                kind,
                x,
                y + FONT,
                font_size=FONT,
                font_weight="600",
                fill=COLOURS[kind],
            )
        )
    return "".join(heads)


# -- marks -----------------------------------------------------------------------------
def _mark_of_kind(kind: str, x: float, y: float) -> str:
    """A circle for virtual, a triangle for emulated, a square for measured."""
    style = {"fill": COLOURS[kind], "stroke": "#fff", "stroke_width": "1.5"}
    if kind == "virtual":
        return circle(x, y, 7, **style)
    if kind == "emulated":
        corners = f"M{point(x, y - 8)}L{point(x + 8, y + 6)}L{point(x - 8, y + 6)}Z"
        return tag("path", d=corners, **style)
    return rectangle(x - 6.5, y - 6.5, 13, 13, **style)


def _mark_of_verdict(holds: str, x: float, y: float) -> str:
    """A tick on a disc, a cross on a square, a lozenge in a lozenge, a dash."""
    if holds == "yes":
        tick = f"M{point(x - 4.5, y)}L{point(x - 1, y + 4)}L{point(x + 5, y - 4)}"
        disc = circle(x, y, 10, fill=SIGNS["yes"].colour)
        return disc + _white_stroke(tick)
    if holds == "no":
        cross = (
            f"M{point(x - 4, y - 4)}L{point(x + 4, y + 4)}"
            f"M{point(x - 4, y + 4)}L{point(x + 4, y - 4)}"
        )
        square = rectangle(x - 9, y - 9, 18, 18, fill=SIGNS["no"].colour)
        return square + _white_stroke(cross)
    if holds == "open":
        lozenge = tag("path", d=_lozenge(x, y, 12), fill=SIGNS["open"].colour)
        return lozenge + _white_stroke(_lozenge(x, y, 5))
    return horizontal_line(y, x - 6, x + 6, stroke=QUIET, stroke_width=2)


def _lozenge(x: float, y: float, reach: float) -> str:
    """The path of a lozenge whose corners lie ``reach`` pixels from its middle."""
    corners = (
        point(x, y - reach),
        point(x + reach, y),
        point(x, y + reach),
        point(x - reach, y),
    )
    return f"M{'L'.join(corners)}Z"


def _white_stroke(path: str) -> str:
    return tag(
        "path",
        d=path,
        fill="none",
        stroke="#fff",
        stroke_width=2.4,
        stroke_linecap="round",
    )


# -- legend ----------------------------------------------------------------------------
def _draw_legend(rows: Sequence[Row], width: float) -> tuple[str, float]:
    """What the marks mean, in as many lines as it takes; and where the rows begin."""
    claimed = "the paper's number, and how far from it the claim still holds"
    if width < NARROW:
        claimed = "the paper's number, and its tolerance"
    entries: list[tuple[Callable[[float, float], str], str]] = [
        (_key_of_claim, claimed)
    ]
    for kind in ENGINE_KINDS:
        entries.append((_key_of_kind(kind), kind))
    for holds, sign in SIGNS.items():
        entries.append((_key_of_verdict(holds), sign.words))

    elements = []
    x, y = float(PAD), float(PAD + 12)
    for draw_key, words in entries:
        needed = 28 + text_width(words, SMALL)
        if x > PAD and x + needed > width - PAD:
            x = float(PAD)
            y += LINE + 7
        elements.append(draw_key(x + 10, y))
        elements.append(text_at(words, x + 28, y + 5, font_size=SMALL, fill=INK))
        x += needed + LEGEND_GAP
    return "".join(elements), y + 26


def _key_of_claim(x: float, y: float) -> str:
    band = rectangle(x - 10, y - 10, 20, 20, fill=BAND)
    return band + rectangle(x - 2, y - 10, 4, 20, fill=INK)


def _key_of_kind(kind: str) -> Callable[[float, float], str]:
    return lambda x, y: _mark_of_kind(kind, x, y)


def _key_of_verdict(holds: str) -> Callable[[float, float], str]:
    return lambda x, y: _mark_of_verdict(holds, x, y)


def in_words(row: Row) -> str:
    """A row of the picture for those who do not see it."""
    parts = [f"{row.claim.claim.text}: claimed {coordinate(row.claim.claimed)}"]
    for kind, judged in row.claim.verdicts.items():
        if kind in ENGINE_KINDS and judged.number is not None:
            words = SIGNS[judged.line.holds].words
            parts.append(f"{kind} {number(judged.number.value)} ({words})")
    return ", ".join(parts)
