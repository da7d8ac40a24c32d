"""The picture of a timeline: its layout, as SVG.

A timeline has one time axis and, stacked above it, one panel per run::

    label, note                                         headline
      draft   [ lane                             ]      facts
      target  [ lane                             ]
              the text as it grows
    (the next run's panel)
              +----------+----------+------------
                          time in ms
    legend

Outcomes differ in pattern as well as in colour, and tooltips are ``<title>`` elements.

This is the only layout: ``timeline.js`` stretches the picture along its time axis, as
the attributes of each element specify. ``data-gap``: by how many pixels a box is
narrower than its duration. ``data-from`` and ``data-until``: the zooms between which an
element is visible. They hide labels that are too wide at first and lines that are too
dense. The growing text and the axis's labels exist once for each of ``ZOOM_LEVELS``.
The player's cursor is hidden at first. The same traces give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from speclib.drawing import svg
from speclib.drawing.numbers import Unit
from speclib.drawing.text_in_pictures import (
    FONT_SIZE,
    TextPart,
    end_that_fits,
    one_line,
    text_width,
)

from .axis import GUTTER, TimeAxis
from .lanes import Box, boxes_of, row_count
from .run import CommittedText, TimelineRun
from .sayings import fact_lines

Attributes: TypeAlias = dict[str, Any]

ZOOM_LEVELS = (1, 3, 9, 27)  # each three times as large as the one before

# Pixels along the time axis.
PLOT_LEFT = svg.PAD + GUTTER  # the left end of the axis
NAME_GAP = 8  # between a lane's name and the lane
DENSE = 4  # the least distance between two lines of the same kind
LABEL_MARGIN = 3  # around a box's label
MOST_GAP, GAP_SHARE = 1.5, 0.15  # white space after a box: pixels, and share of the box
ROUNDING = 1e-6  # how far a mark may be beyond the axis
TEXT_GAP = 5  # between two pieces of the growing text
PATIENCE = 200  # text that is still too dense after this many pixels is cut

# Heights in pixels.
HEAD_HEIGHT = 25  # of a panel's label, above its lanes
LANE_HEIGHT = 28
LANE_GAP = 4
SEQUENCE_HEIGHT = 19  # of a row in a lane that shows several sequences
MOST_SEQUENCES = 4  # a lane grows up to this many rows; then its rows shrink
TEXT_ROW_HEIGHT = 27
FACT_HEIGHT = 20
PANEL_GAP = 16
AXIS_HEIGHT = 44
LEGEND_GAP = 10  # above the legend
LEGEND_ROW_HEIGHT = 24

TITLE_SIZE = 17  # font size of a run's name and headline
TITLE: Attributes = {"font_size": TITLE_SIZE, "font_weight": "600", "fill": svg.INK}
TAIL_LETTERS = 70  # how many letters of the text so far a commit's tooltip repeats
NEVER_LABELLED = ("idle", "lost")
HATCHED = ("idle", "discarded", "rejected")  # kinds of boxes that have a pattern

# The legend's words for each kind of box, and for the text of each model.
MEANINGS = {
    "accepted": "draft: accepted",
    "rejected": "rejected",
    "discarded": "discarded untested",
    "dropped": "not followed",
    "score": "target pass",
    "unused": "unused",
    "message": "message under way",
    "idle": "waiting",
    "lost": "lost",
    "draft": "text by the draft model",
    "target": "text by the target model",
}
RARE_KINDS = ("dropped", "unused", "message", "lost")  # in the legend only if drawn
KEY_WIDTH = 20  # of the legend
KEY_GAP = 6
ENTRY_GAP = 18


class LineKind(NamedTuple):
    """How a vertical line is drawn.

    It starts ``above`` pixels above the lanes' upper edge if it ``crosses`` them, else
    above their lower edge. It ends ``below`` pixels below their lower edge.
    """

    crosses: bool
    above: float
    below: float
    style: Attributes


# Lines where a round starts, where tokens are committed, and where the text ends. A
# "spot" is an invisible line with a commit's tooltip.
LINE_KINDS = {
    "round": LineKind(
        True,
        3,
        0,
        {"stroke": "#000", "stroke_opacity": 0.35, "stroke_dasharray": "2 2"},
    ),
    "commit": LineKind(False, 3, 6, {"stroke": svg.INK, "stroke_width": 1.5}),
    "spot": LineKind(
        False, 2, 10, {"stroke": svg.INK, "stroke_width": 10, "stroke_opacity": 0}
    ),
    "end": LineKind(True, 6, 6, {"stroke": svg.INK, "stroke_width": 3}),
}


class Picture(NamedTuple):
    """A drawn timeline: width and height in pixels, and the ``unit`` of its axis."""

    svg: str
    width: float
    height: float
    unit: Unit


class Lane(NamedTuple):
    """One device's row of boxes; ``y`` is its upper edge."""

    device: str
    y: float
    height: float
    boxes: list[Box]


@dataclass(frozen=True)
class Panel:
    """One run in the timeline; ``y`` is the panel's upper edge.

    ``facts``: the lines next to the lanes, the first line larger. ``top`` and
    ``bottom``: the edges of all lanes together. ``text_height``: the growing text's
    height; 0 if it is left out.
    """

    run: TimelineRun
    axis: TimeAxis
    facts: list[str]
    lanes: list[Lane]
    y: float
    top: float
    bottom: float
    text_height: float = TEXT_ROW_HEIGHT

    @property
    def end(self) -> float:
        """Its lower edge."""
        text_end = self.bottom + self.text_height
        facts_height = FACT_HEIGHT * len(self.facts) + 6
        return max(text_end, self.y + facts_height)


def draw_timeline(
    runs: Sequence[TimelineRun],
    width: float = 1100,
    until: float | None = None,
    compact: bool = False,
) -> Picture:
    """The timeline of ``runs``, ``width`` pixels wide.

    ``until``: where the axis ends, in seconds; at most, and by default, the longest
    makespan. ``compact``, for a projector: only labels, headlines and lanes.
    """
    axis = TimeAxis(width, span_of(runs, until))
    if len({run.kind for run in runs}) > 1:
        runs = [run.with_kind_named() for run in runs]
    panels: list[Panel] = []
    y: float = svg.PAD
    for run in runs:
        panel = lay_out_panel(run, runs, y, axis)
        if compact:
            panel = replace(panel, facts=panel.facts[:1], text_height=0)
        panels.append(panel)
        y = panels[-1].end + PANEL_GAP
    bottom = panels[-1].end

    patterns = svg.unique_name("s", panels)
    body = "".join(map(draw_captions, panels))
    body += draw_plot(panels, axis, bottom, patterns)
    body += draw_axis(axis, axis_title(runs, axis), bottom + 4)
    legend, legend_height = "", 0.0
    if not compact:
        legend, legend_height = draw_legend(panels, bottom + AXIS_HEIGHT, patterns)
    height = bottom + AXIS_HEIGHT + legend_height + svg.PAD
    defs = svg.hatch_patterns(patterns)
    card = svg.card(body + legend, width, height, definitions=defs)
    return Picture(card, width, height, axis.unit)


def span_of(runs: Sequence[TimelineRun], until: float | None) -> float:
    """How many seconds the axis shows: the longest run, but at most ``until``."""
    longest = max(run.seconds for run in runs)
    return min(until or longest, longest) or 1.0


def lay_out_panel(
    run: TimelineRun, runs: Sequence[TimelineRun], y: float, axis: TimeAxis
) -> Panel:
    """The panel of one of ``runs``; ``y`` is its upper edge."""
    facts = fact_lines(run, runs, axis.unit)
    lanes = []
    top = bottom = y + HEAD_HEIGHT
    for device in run.devices:
        events = run.operations_of(device)
        rows = min(max(map(row_count, events)), MOST_SEQUENCES)
        height = max(LANE_HEIGHT, SEQUENCE_HEIGHT * rows)
        lanes.append(Lane(device, bottom, height, boxes_of(run, device, axis)))
        bottom += height + LANE_GAP
    bottom = max(bottom, top + LANE_HEIGHT + LANE_GAP)  # even without lanes
    return Panel(run, axis, facts, lanes, y, top, bottom)


def seen_from(zoom: float) -> Attributes:
    """The attributes of an element that is hidden below this zoom."""
    zoom = round(zoom, 2)
    return {"data_from": zoom, "display": "none"} if zoom > 1 else {}


def levels(name: str, bodies: Sequence[str]) -> str:
    """A group for each zoom level; only one is visible at a time."""
    groups = ""
    for zoom, body in zip(ZOOM_LEVELS, bodies, strict=True):
        groups += svg.tag("g", body, cls=name, data_until=3 * zoom, **seen_from(zoom))
    return groups


# -- left and right of the plot --------------------------------------------------------
def draw_captions(panel: Panel) -> str:
    """The run's name, and the names of its lanes with the places of their devices."""
    run = panel.run
    name = escape(run.label)
    if run.note:
        note = svg.tag("tspan", escape(run.note), fill=svg.QUIET, font_weight="400")
        name += f" {note}"
    captions = svg.tag("text", name, x=PLOT_LEFT, y=panel.y + 15, **TITLE)

    right = PLOT_LEFT - NAME_GAP
    for lane in panel.lanes:
        y = lane.y + lane.height / 2 + 5
        name = escape(lane.device)
        if lane.device in run.places:
            y -= 7
            style = {"fill": svg.QUIET, "font_size": 13}
            name += svg.tag(
                "tspan", escape(run.places[lane.device]), x=right, dy=13, **style
            )
        captions += svg.tag("text", name, x=right, y=y, text_anchor="end", fill=svg.INK)
    return captions + draw_facts(panel)


def draw_facts(panel: Panel) -> str:
    """The facts to the right of the plot: a headline, and lines below it."""
    headline, *lines = panel.facts
    left = PLOT_LEFT + panel.axis.plot + 18
    facts = svg.text_at(headline, left, panel.y + 15, **TITLE)
    for number, line in enumerate(lines, 1):
        y = panel.y + 17 + FACT_HEIGHT * number
        facts += svg.text_at(line, left, y, fill=svg.QUIET)
    return facts


# -- the plot --------------------------------------------------------------------------
def draw_plot(
    panels: Sequence[Panel], axis: TimeAxis, height: float, patterns: str
) -> str:
    """All elements along the time axis, clipped to the plot when it is zoomed."""
    body = ""
    for panel in panels:
        lanes = [draw_lane(lane, patterns) for lane in panel.lanes]
        committed = panel.run.committed_texts()
        rows = [draw_growing_text(panel, committed, zoom) for zoom in ZOOM_LEVELS]
        body += svg.tag(
            "g",
            "".join(lanes) + draw_marks(panel, committed) + levels("row", rows),
            cls="run",
        )

    hidden: Attributes = {"display": "none", "pointer_events": "none"}
    veil: Attributes = {"fill": "#fff", "fill_opacity": 0.72, **hidden}
    cursor: Attributes = {"stroke": svg.INK, "stroke_width": 2, **hidden}
    body += svg.rectangle(0, 0, axis.plot, height, kind="veil", **veil)
    body += svg.vertical_line(0, 0, height, kind="cursor", **cursor)
    size = {"x": PLOT_LEFT, "y": 0, "width": axis.plot, "height": height}
    return svg.tag("svg", body, cls="plot", overflow="hidden", **size)


def draw_lane(lane: Lane, patterns: str) -> str:
    least_zoom = zoom_of_labels(lane)
    boxes = [draw_box(box, lane, patterns, least_zoom) for box in lane.boxes]
    return svg.tag("g", "".join(boxes), cls="lane", data_device=lane.device)


def zoom_of_label(box: Box) -> float:
    """The smallest zoom at which a box's label fits into it."""
    if not box.label or not box.width:
        return inf
    return (text_width(box.label) + LABEL_MARGIN) / box.width


def zoom_of_labels(lane: Lane) -> float:
    """The smallest zoom at which half of a lane's boxes can show their labels.

    Fewer labels would look stray.
    """
    boxes = [box for box in lane.boxes if box.kind not in NEVER_LABELLED]
    zooms = sorted(map(zoom_of_label, boxes))
    return zooms[(len(zooms) - 1) // 2] if zooms else inf


def draw_box(box: Box, lane: Lane, patterns: str, least_zoom: float) -> str:
    """A rectangle and its label, if the label fits at any zoom."""
    height = lane.height / box.rows
    top = lane.y + height * box.row
    gap = min(MOST_GAP, GAP_SHARE * box.width)
    drawn = svg.rectangle(
        box.x,
        top,
        box.width - gap,
        height - (1 if box.rows > 1 else 0),
        kind=box.kind,
        tip=box.tip,
        data_gap=gap,
        **style_of(box.kind, patterns),
    )
    zoom = max(zoom_of_label(box), least_zoom)
    if height < FONT_SIZE or zoom > ZOOM_LEVELS[-1]:
        return drawn

    attributes = seen_from(zoom)
    if box.kind == "rejected":
        attributes["text_decoration"] = "line-through"
    return drawn + svg.text_at(
        box.label,
        box.x + box.width / 2,
        top + height / 2 + 5,
        cls="label",
        text_anchor="middle",
        pointer_events="none",
        fill="#fff" if box.kind in ("score", "lost") else "#000",
        **attributes,
    )


def style_of(kind: str, patterns: str) -> Attributes:
    """The colour or pattern of a kind of box, and an outline if it is pale."""
    fill = f"url(#{patterns}-{kind})" if kind in HATCHED else svg.KIND_COLOURS[kind]
    if kind not in svg.OUTLINES:
        return {"fill": fill}
    return {"fill": fill, "stroke": svg.OUTLINES[kind], "stroke_width": "0.75"}


def draw_marks(panel: Panel, committed: Sequence[CommittedText]) -> str:
    """Lines where rounds start, where text is committed, and where it is complete.

    A commit's tooltip shows the text so far. Devices may still be working after the
    text ends.
    """
    axis, run = panel.axis, panel.run
    commit_gap = axis.x(run.seconds) / max(1, len(committed))  # on average
    starts: dict[int, float] = {}
    for event in run.trace.operations:
        starts[event.round] = min(event.ts, starts.get(event.round, event.ts))

    lines = ""
    previous_x = 0.0
    for x in sorted(axis.x(start) for start in starts.values() if start):
        lines += draw_line(panel, "round", x, min(commit_gap, x - previous_x))
        previous_x = x

    tail = ""
    for commit, parts in committed:
        new_text = "".join(part.text for part in parts)
        tail = (tail + new_text)[-TAIL_LETTERS:]
        tip = (
            f"commit of {len(parts)} at {axis.time(commit.end)}: “{one_line(new_text)}”"
            f"\n…{one_line(tail)}"
        )
        lines += draw_line(panel, "commit", axis.x(commit.end), commit_gap)
        lines += draw_line(panel, "spot", axis.x(commit.end), commit_gap, tip)
    return lines + draw_line(panel, "end", axis.x(run.stats.seconds or run.seconds))


def draw_line(
    panel: Panel, kind: str, x: float, gap: float = inf, tip: str = ""
) -> str:
    """A line, ``gap`` pixels from the next of its kind; hidden if the gap is small."""
    if x > panel.axis.plot + ROUNDING or not gap:
        return ""
    line = LINE_KINDS[kind]
    top = (panel.top if line.crosses else panel.bottom) - line.above
    style = line.style | seen_from(DENSE / gap)
    return svg.vertical_line(
        x, top, panel.bottom + line.below, kind=kind, tip=tip, **style
    )


def draw_growing_text(
    panel: Panel, committed: Sequence[CommittedText], zoom: int
) -> str:
    """The committed text at a zoom level, each piece ending where it was committed.

    A commit whose text is wider than the space before it is joined to the next one, so
    nothing appears before its time. If the text is still too dense after ``PATIENCE``
    pixels, only its last words are shown.
    """
    axis = panel.axis
    if not panel.text_height:
        return ""
    visible = []
    for commit, parts in committed:
        x = axis.x(commit.end)
        if parts and x <= axis.plot + ROUNDING:
            visible.append((x * zoom, parts))

    pieces = ""
    waiting: list[TextPart] = []
    width = 0.0  # of the waiting text
    free = 0.0  # where the last piece ended
    for number, (x, parts) in enumerate(visible, 1):
        new_parts = [TextPart(part.kind, one_line(part.text)) for part in parts]
        waiting += new_parts
        width += sum(text_width(part.text) for part in new_parts)
        free_width = x - free
        is_last = number == len(visible)
        if width > free_width and free_width < PATIENCE and not is_last:
            continue
        shown = end_that_fits(waiting, free_width)
        pieces += draw_text_end(shown, x / zoom, panel.bottom + 20)
        waiting, width, free = [], 0.0, x + TEXT_GAP
    return pieces


def draw_text_end(parts: Sequence[TextPart], x: float, y: float) -> str:
    """A piece of text that ends at ``x``, styled by its writer; "" for no text."""
    spans = ""
    for part in parts:
        spans += svg.tag("tspan", escape(part.text), **style_of_writer(part.kind))
    return svg.tag("text", spans, x=x, y=y, text_anchor="end") if spans else ""


# -- below the panels ------------------------------------------------------------------
def axis_title(runs: Sequence[TimelineRun], axis: TimeAxis) -> str:
    """The unit, the kinds of the numbers on this axis, and whether it is cut off."""
    kinds = ", ".join(dict.fromkeys(run.kind for run in runs))
    longest = max(run.seconds for run in runs)
    is_cut_off = longest > axis.span * (1 + 1e-9)
    warning = "; cut off here, but the figures are for whole runs"
    return f"time in {axis.unit.name} ({kinds}{warning if is_cut_off else ''})"


def draw_axis(axis: TimeAxis, title: str, top: float) -> str:
    """The axis with its labels, and its title below."""
    labels = []
    for zoom in ZOOM_LEVELS:
        ticks = ""
        for x, label in axis.ticks(zoom):
            ticks += svg.text_at(label, x, top + 18, text_anchor="middle")
            ticks += svg.vertical_line(x, top, top + 5, stroke=svg.QUIET)
        labels.append(ticks)

    middle = axis.plot / 2
    body = svg.horizontal_line(top, 0, axis.plot, stroke=svg.QUIET)
    body += levels("ticks", labels)
    body += svg.text_at(title, middle, top + 38, text_anchor="middle", fill=svg.INK)
    return svg.tag("g", body, transform=f"translate({PLOT_LEFT} 0)", fill=svg.QUIET)


def draw_legend(
    panels: Sequence[Panel], top: float, patterns: str
) -> tuple[str, float]:
    """The legend of boxes and of the growing text's colours, and its height."""
    lanes = [lane for panel in panels for lane in panel.lanes]
    kinds = {box.kind for lane in lanes for box in lane.boxes}
    most_width = panels[0].axis.width - svg.PAD

    legend = ""
    x: float = svg.PAD
    y = top + LEGEND_GAP
    for kind, meaning in MEANINGS.items():
        if kind in RARE_KINDS and kind not in kinds:
            continue
        width = KEY_WIDTH + KEY_GAP + text_width(meaning)
        if x > svg.PAD and x + width > most_width:
            x, y = svg.PAD, y + LEGEND_ROW_HEIGHT
        legend += draw_legend_entry(kind, meaning, x, y, patterns)
        x += width + ENTRY_GAP
    return legend, y + LEGEND_ROW_HEIGHT - top


def draw_legend_entry(
    kind: str, meaning: str, x: float, y: float, patterns: str
) -> str:
    text_x = x + KEY_WIDTH + KEY_GAP
    if kind in svg.WRITER_COLOURS:
        key = svg.text_at("abc", x, y + 13, **style_of_writer(kind))
        return key + svg.text_at(meaning, text_x, y + 13, fill=svg.WRITER_COLOURS[kind])
    key = svg.rectangle(x, y, KEY_WIDTH, 16, **style_of(kind, patterns))
    return key + svg.text_at(meaning, text_x, y + 13, fill=svg.INK)


def style_of_writer(kind: str) -> Attributes:
    """The colour of a writer's text, and a mark to recognise it without colour."""
    return {"fill": svg.WRITER_COLOURS[kind], **svg.WRITER_MARKS.get(kind, {})}
