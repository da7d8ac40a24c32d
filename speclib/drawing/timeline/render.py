"""A timeline as SVG text; the same bytes for the same traces.

The SVG is complete in itself: tooltips are ``<title>`` elements, colours and fonts are
attributes. There are two forms. The static one is a picture. The zoomable one also
holds what a closer look shows: labels that are too wide at first, lines that are too
dense, and the growing text and the axis's labels once per zoom level. All of that is
hidden until ``timeline.js`` shows it. Outcomes differ in pattern as well as in colour.
Knows no notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from speclib.drawing.svg import (
    INK,
    KIND_COLOURS,
    OUTLINES,
    PAD,
    QUIET,
    WRITER_COLOURS,
    WRITER_MARKS,
    card,
    coordinate,
    hatch_patterns,
    horizontal_line,
    rectangle,
    tag,
    text_at,
    unique_name,
    vertical_line,
)
from speclib.drawing.text_in_pictures import FONT_SIZE, text_width

from .drawn_parts import GUTTER, NAME_GAP, Box, Lane, Mark, TextEnd, TimeAxis
from .layout import (
    LEGEND_KEY_GAP,
    LEGEND_KEY_WIDTH,
    LEGEND_ROW_HEIGHT,
    ZOOM_LEVELS,
    Figure,
    Panel,
)

PLOT_LEFT = PAD + GUTTER  # where the time axis begins
DENSE = 4  # pixels between two lines, at least; timeline.js has the same
LABEL_MARGIN = 3  # pixels of a box that its label leaves free
NEVER_LABELLED = ("idle", "lost")
HATCHED = ("idle", "discarded", "rejected")  # kinds of boxes that have a pattern


def render_timeline(figure: Figure, zoomable: bool = False) -> str:
    """The SVG of a laid-out timeline, static or zoomable."""
    pattern_name = unique_name("s", figure.panels)
    captions = [render_captions(panel, figure.axis) for panel in figure.panels]
    body = (
        "".join(captions)
        + render_plot(figure, pattern_name, zoomable)
        + render_axis(figure, zoomable)
        + render_legend(figure, pattern_name)
    )
    patterns = hatch_patterns(pattern_name)
    return card(body, figure.axis.width, figure.height, definitions=patterns)


def fill_of(kind: str, pattern_name: str) -> str:
    """The colour or the pattern of a kind of box."""
    if kind in HATCHED:
        return f"url(#{pattern_name}-{kind})"
    return KIND_COLOURS[kind]


def outline_of(kind: str) -> dict[str, str]:
    """The outline of a kind of box that is too pale without one."""
    if kind not in OUTLINES:
        return {}
    return {"stroke": OUTLINES[kind], "stroke_width": "0.75"}


def levels_of(zoomable: bool) -> Sequence[int]:
    """The zoom levels that a picture holds."""
    return ZOOM_LEVELS if zoomable else ZOOM_LEVELS[:1]


def hidden_if(is_hidden: bool) -> dict[str, str]:
    """The attribute of an element that ``timeline.js`` shows at a closer look."""
    return {"display": "none"} if is_hidden else {}


# -- beside the plot -------------------------------------------------------------------
def render_captions(panel: Panel, axis: TimeAxis) -> str:
    """The run's name, the names of its lanes, and its facts."""
    lane_names = []
    for lane in panel.lanes:
        place = panel.run.places.get(lane.name, "")
        lane_names.append(render_lane_name(lane, place))
    return render_run_name(panel) + "".join(lane_names) + render_facts(panel, axis)


def render_run_name(panel: Panel) -> str:
    run = panel.run
    name = escape(run.label)
    if run.note:
        note = tag("tspan", escape(run.note), fill=QUIET, font_weight="400")
        name += f" {note}"
    return tag(
        "text",
        name,
        x=PLOT_LEFT,
        y=panel.y + 15,
        font_size=17,
        font_weight="600",
        fill=INK,
    )


def render_lane_name(lane: Lane, place: str) -> str:
    """A lane's name and, under it, where its device is."""
    right = PLOT_LEFT - NAME_GAP
    middle = lane.y + lane.height / 2
    name = escape(lane.name)
    if place:
        name += tag("tspan", escape(place), x=right, dy=13, fill=QUIET, font_size=13)
    return tag(
        "text",
        name,
        x=right,
        y=middle - 2 if place else middle + 5,
        text_anchor="end",
        fill=INK,
    )


def render_facts(panel: Panel, axis: TimeAxis) -> str:
    """The facts right of the plot; in a narrow picture above it, headline right."""
    headline, *facts = panel.facts
    right = PLOT_LEFT + axis.plot
    left = PLOT_LEFT if axis.is_narrow else right + 18
    position = {"x": right, "text_anchor": "end"} if axis.is_narrow else {"x": left}

    y = panel.y + 15
    style = {"fill": INK, "font_size": 17, "font_weight": "600"}
    elements = [tag("text", escape(headline), y=y, **position, **style)]
    for number, fact in enumerate(facts):
        elements.append(text_at(fact, left, y + 22 + 20 * number, fill=QUIET))
    return "".join(elements)


# -- the plot --------------------------------------------------------------------------
def render_plot(figure: Figure, pattern_name: str, zoomable: bool) -> str:
    """All that stands along the time axis; what zooming moves past it is cut off."""
    runs = []
    for panel in figure.panels:
        body = (
            render_lanes(panel, pattern_name, zoomable)
            + render_marks(panel, zoomable)
            + render_growing_text(panel, zoomable)
        )
        runs.append(tag("g", body, cls="run"))
    return tag(
        "svg",
        tag("g", "".join(runs)),
        cls="plot",
        x=PLOT_LEFT,
        y=0,
        width=figure.axis.plot,
        height=figure.panels_bottom,
        overflow="hidden",
    )


def render_lanes(panel: Panel, pattern_name: str, zoomable: bool) -> str:
    lanes = []
    for lane in panel.lanes:
        is_labelled = shows_labels(lane)
        boxes = []
        for box in lane.boxes:
            boxes.append(render_box(box, lane, pattern_name, zoomable, is_labelled))
        lanes.append(tag("g", "".join(boxes), cls="lane", data_device=lane.name))
    return "".join(lanes)


def shows_labels(lane: Lane) -> bool:
    """Whether labels fit into at least half of a lane's boxes.

    A few alone would be stray words. timeline.js has the same rule.
    """
    boxes = [box for box in lane.boxes if box.kind not in NEVER_LABELLED]
    fitting = [b for b in boxes if b.label and width_needed(b.label) <= b.width]
    return 2 * len(fitting) >= len(boxes)


def width_needed(label: str) -> float:
    """Pixels of a box that its label takes."""
    return text_width(label) + LABEL_MARGIN


def render_box(
    box: Box, lane: Lane, pattern_name: str, zoomable: bool, is_labelled: bool
) -> str:
    """A rectangle and, where it fits or a closer look makes it fit, its label."""
    height = lane.height / box.rows
    top = lane.y + height * box.row
    gap_below = 1 if box.rows > 1 else 0
    coloured = rectangle(
        box.x,
        top,
        box.width - gap_after(box.width),
        height - gap_below,
        kind=box.kind,
        tip=box.tip,
        fill=fill_of(box.kind, pattern_name),
        **outline_of(box.kind),
    )
    if not box.label or height < FONT_SIZE:
        return coloured
    return coloured + render_label(box, top + height / 2, zoomable, is_labelled)


def gap_after(width: float) -> float:
    """White after a box, to tell neighbours apart; timeline.js has the same."""
    return min(1.5, width * 0.15)


def render_label(box: Box, middle: float, zoomable: bool, is_labelled: bool) -> str:
    """A box's label, at the height of its ``middle``; nothing if it does not fit."""
    needed = width_needed(box.label)
    fits = is_labelled and needed <= box.width
    fits_when_zoomed = needed <= box.width * ZOOM_LEVELS[-1]
    if not fits and not (zoomable and fits_when_zoomed):
        return ""

    attributes = hidden_if(not fits)
    if box.kind == "rejected":
        attributes["text_decoration"] = "line-through"
    return text_at(
        box.label,
        box.x + box.width / 2,
        middle + 5,
        cls="label",
        text_anchor="middle",
        pointer_events="none",
        fill="#fff" if box.kind in ("score", "lost") else "#000",
        **attributes,
    )


def render_marks(panel: Panel, zoomable: bool) -> str:
    """Rounds, commits and the end as lines; none where they would run into a grey."""
    elements = []
    for mark in panel.marks:
        is_dense = mark.room < DENSE
        if is_dense and not zoomable:
            continue
        attributes = hidden_if(is_dense)
        if zoomable:
            attributes["data_room"] = coordinate(mark.room)
        elements.append(render_mark(mark, panel, attributes))
        if mark.tip:
            elements.append(render_pointing_area(mark, panel, attributes))
    return "".join(elements)


def render_mark(mark: Mark, panel: Panel, attributes: dict[str, str]) -> str:
    """A round's dashed line, a commit's tick, or the thick line at the end."""
    lanes_top, lanes_bottom = panel.lanes_top, panel.lanes_bottom
    style: dict[str, str | float]
    if mark.kind == "round":
        top, bottom = lanes_top - 3, lanes_bottom
        style = {"stroke": "#000", "stroke_opacity": 0.35, "stroke_dasharray": "2 2"}
    elif mark.kind == "commit":
        top, bottom = lanes_bottom - 3, lanes_bottom + 6
        style = {"stroke": INK, "stroke_width": 1.5}
    else:
        top, bottom = lanes_top - 6, lanes_bottom + 6
        style = {"stroke": INK, "stroke_width": 3}
    return vertical_line(mark.x, top, bottom, kind=mark.kind, **style, **attributes)


def render_pointing_area(mark: Mark, panel: Panel, attributes: dict[str, str]) -> str:
    """An invisible area around a mark, wide enough to point at, with its tooltip."""
    return rectangle(
        mark.x - 5,
        panel.lanes_bottom - 2,
        10,
        12,
        kind="spot",
        tip=mark.tip,
        fill_opacity=0,
        **attributes,
    )


def render_growing_text(panel: Panel, zoomable: bool) -> str:
    """The text below the lanes, marked by who wrote it, once per zoom level."""
    rows = []
    y = panel.lanes_bottom + 20
    for zoom in levels_of(zoomable):
        pieces = [render_text_end(piece, y) for piece in panel.texts[zoom]]
        rows.append(render_level("row", zoom, "".join(pieces), zoomable))
    return "".join(rows)


def render_text_end(piece: TextEnd, y: float) -> str:
    spans = []
    for part in piece.parts:
        marks = WRITER_MARKS.get(part.kind, {})
        colour = WRITER_COLOURS[part.kind]
        spans.append(tag("tspan", escape(part.text), fill=colour, **marks))
    return tag("text", "".join(spans), x=piece.x, y=y, text_anchor="end")


def render_level(name: str, zoom: int, body: str, zoomable: bool) -> str:
    """What is shown at one zoom level; only the first level is visible at first."""
    attributes: dict[str, object] = {"data_level": zoom} if zoomable else {}
    return tag("g", body, cls=name, **attributes, **hidden_if(zoom > 1))


# -- below the panels ------------------------------------------------------------------
def render_axis(figure: Figure, zoomable: bool) -> str:
    """The axis with its labels, and under it the unit and the kind of number."""
    axis = figure.axis
    top = figure.panels_bottom + 4
    rule = horizontal_line(top, 0, axis.plot, stroke=QUIET)
    levels = [
        render_level("ticks", zoom, render_ticks(axis, zoom, top), zoomable)
        for zoom in levels_of(zoomable)
    ]
    title = text_at(
        figure.axis_title, axis.plot / 2, top + 38, text_anchor="middle", fill=INK
    )
    return tag(
        "g",
        rule + "".join(levels) + title,
        transform=f"translate({PLOT_LEFT} 0)",
        fill=QUIET,
    )


def render_ticks(axis: TimeAxis, zoom: int, top: float) -> str:
    elements = []
    for tick in axis.ticks(zoom):
        elements += [
            text_at(tick.label, tick.x, top + 18, text_anchor="middle"),
            vertical_line(tick.x, top, top + 5, stroke=QUIET),
        ]
    return "".join(elements)


def render_legend(figure: Figure, pattern_name: str) -> str:
    """What the colours of boxes and of the growing text mean."""
    elements = []
    for entry in figure.legend:
        x = PAD + entry.x
        y = figure.legend_top + entry.row * LEGEND_ROW_HEIGHT
        text_x = x + LEGEND_KEY_WIDTH + LEGEND_KEY_GAP
        if entry.kind in WRITER_COLOURS:
            colour = WRITER_COLOURS[entry.kind]
            marks = WRITER_MARKS.get(entry.kind, {})
            key = text_at("abc", x, y + 13, fill=colour, **marks)
        else:
            colour = INK
            fill = fill_of(entry.kind, pattern_name)
            outline = outline_of(entry.kind)
            key = rectangle(x, y, LEGEND_KEY_WIDTH, 16, fill=fill, **outline)
        elements += [key, text_at(entry.meaning, text_x, y + 13, fill=colour)]
    return "".join(elements)
