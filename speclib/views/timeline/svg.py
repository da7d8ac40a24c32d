"""A timeline as SVG text and as PNG bytes; the same bytes for the same traces.

The SVG is complete in itself: tooltips are ``<title>`` elements, colours and fonts are attributes.
``timeline.js`` adds zoom to the interactive form, which differs from the static one only in what
it holds ready for closer looks. Colours are Okabe and Ito's, told apart by colour-blind readers;
outcomes differ in pattern as well. Knows no notebook.
"""

from __future__ import annotations

from xml.sax.saxutils import escape
from zlib import crc32

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
from speclib.views.text import FONT, text_width

from .facts import Run
from .layout import HEAD, LEVELS, Figure, Group, layout
from .shapes import GUTTER, Lane, Shape

LEGEND = [
    ("accepted", "drafted: accepted"),
    ("rejected", "rejected"),
    ("wasted", "wasted"),
    ("dropped", "not chosen"),
    ("score", "target pass"),
    ("unused", "unused"),
    ("idle", "waiting"),
    ("lost", "lost"),
]
LEFT = PAD + GUTTER
DENSE = 4  # pixels between lines, at least; timeline.js has the same


def gap(width: float) -> float:
    """White at the right of a bar, so that neighbours are told apart; timeline.js has the same."""
    return min(1.5, width * 0.15)


def bar(shape: Shape, lane: Lane, name: str, zoomable: bool) -> str:
    """A rectangle and, where it fits (or may fit later), its label."""
    height = lane.height / shape.rows
    y = lane.y + height * shape.row
    fill = (
        f"url(#{name}-{shape.kind})"
        if shape.kind in ("idle", "wasted")
        else COLOURS[shape.kind]
    )
    drawn = tag(
        "rect",
        tag("title", escape(shape.tip)),
        cls=shape.kind,
        x=n(shape.x),
        y=n(y),
        width=n(shape.width - gap(shape.width)),
        height=n(height - (shape.rows > 1)),
        fill=fill,
    )
    need = text_width(shape.label) + 5
    fits = need <= shape.width
    could = fits or zoomable and need <= shape.width * LEVELS[-1]
    if not shape.label or height < FONT or not could:
        return drawn
    more = ({"data_need": n(need)} if zoomable else {}) | hidden(not fits)
    if shape.kind == "rejected":
        more["text_decoration"] = "line-through"
    return drawn + words(
        shape.label,
        shape.x + shape.width / 2,
        y + height / 2 + 5,
        cls="label",
        text_anchor="middle",
        pointer_events="none",
        fill="#fff" if shape.kind in ("score", "lost") else "#000",
        **more,
    )


def hidden(flag: bool) -> dict:
    return {"display": "none"} if flag else {}


def lines(group: Group, zoomable: bool) -> str:
    """Hairlines, commit ticks and the end; where they would run into a grey, none are drawn."""
    top, row, drawn = group.y + HEAD, group.row, []
    style = {
        "round": dict(
            y1=n(top - 3),
            y2=n(row),
            stroke="#000",
            stroke_opacity="0.35",
            stroke_dasharray="2 2",
        ),
        "commit": dict(y1=n(row - 3), y2=n(row + 6), stroke=INK, stroke_width="1.5"),
        "end": dict(y1=n(top - 6), y2=n(row + 6), stroke=INK, stroke_width="3"),
    }
    for mark in group.marks:
        if mark.room < DENSE and not zoomable:
            continue
        x, more = n(mark.x), hidden(mark.room < DENSE)
        more |= {"data_room": n(mark.room)} if zoomable else {}
        drawn.append(tag("line", cls=mark.kind, x1=x, x2=x, **style[mark.kind], **more))
        if mark.tip:  # a wider area to point at
            drawn.append(
                tag(
                    "rect",
                    tag("title", escape(mark.tip)),
                    cls="spot",
                    x=n(mark.x - 5),
                    y=n(row - 2),
                    width="10",
                    height="12",
                    fill_opacity="0",
                    **more,
                )
            )
    return "".join(drawn)


def rows(group: Group, zoomable: bool) -> str:
    """The growing text, green by the draft, blue by the target; one version per zoom level."""
    drawn = []
    for level, texts in group.rows.items():
        body = ""
        for text in texts:
            spans = "".join(
                tag("tspan", escape(part), fill=WRITERS[who])
                for who, part in text.parts
            )
            body += tag(
                "text", spans, x=n(text.x), y=n(group.row + 20), text_anchor="end"
            )
        more = {"data_level": level} if zoomable else {}
        drawn.append(tag("g", body, cls="row", **more, **hidden(level > 1)))
    return "".join(drawn)


def side(lane: Lane, place: str) -> str:
    """A lane's name and, under it, where that device is."""
    under = tag("tspan", escape(place), x=n(LEFT - 8), dy=13, fill=QUIET, font_size=13)
    y = lane.y + lane.height / 2 + (-2 if place else 5)
    return tag(
        "text",
        escape(lane.name) + under * bool(place),
        x=n(LEFT - 8),
        y=n(y),
        text_anchor="end",
        fill=INK,
    )


def names(group: Group, figure: Figure) -> str:
    """What stands beside the plot: the run's name, its lanes' names, its facts."""
    note = f' <tspan fill="{QUIET}" font-weight="400">{escape(group.run.note)}</tspan>'
    head = tag(
        "text",
        escape(group.run.label) + note * bool(group.run.note),
        x=n(LEFT),
        y=n(group.y + 15),
        font_size=17,
        font_weight="600",
        fill=INK,
    )
    sides = "".join(
        side(lane, group.run.places.get(lane.name, "")) for lane in group.lanes
    )
    right = LEFT + figure.frame.plot + 18
    first, *others = group.facts
    told = words(first, right, group.y + 15, fill=INK, font_size=17, font_weight="600")
    told += "".join(
        words(fact, right, group.y + 37 + 20 * i, fill=QUIET)
        for i, fact in enumerate(others)
    )
    return head + sides + told


def axis(figure: Figure, zoomable: bool) -> str:
    """Tick labels under the last group, the unit and the kind of number."""
    frame, drawn = figure.frame, []
    top = max(g.y + g.height for g in figure.groups) + 4
    for level in LEVELS if zoomable else (1,):
        body = "".join(
            words(label, x, top + 18, text_anchor="middle")
            + tag("line", x1=n(x), x2=n(x), y1=n(top), y2=n(top + 5), stroke=QUIET)
            for x, label in frame.ticks(level)
        )
        more = {"data_level": level} if zoomable else {}
        drawn.append(tag("g", body, cls="ticks", **more, **hidden(level > 1)))
    rule = tag("line", x1="0", x2=n(frame.plot), y1=n(top), y2=n(top), stroke=QUIET)
    name = words(figure.title, frame.plot / 2, top + 38, text_anchor="middle", fill=INK)
    return tag(
        "g",
        rule + "".join(drawn) + name,
        transform=f"translate({n(LEFT)} 0)",
        fill=QUIET,
    )


def legend(figure: Figure, name: str) -> str:
    shown = {
        shape.kind for g in figure.groups for lane in g.lanes for shape in lane.shapes
    }
    x, drawn = float(PAD), []
    for kind, label in LEGEND:
        if kind in ("unused", "lost", "dropped") and kind not in shown:
            continue
        fill = f"url(#{name}-{kind})" if kind in ("idle", "wasted") else COLOURS[kind]
        drawn += [
            tag("rect", x=n(x), y=PAD, width="20", height="16", fill=fill),
            words(label, x + 26, PAD + 13, fill=INK),
        ]
        x += 26 + text_width(label) + 20
    spans = [
        tag("tspan", "text by the draft", fill=WRITERS["draft"]),
        ", ",
        tag("tspan", "the target", fill=WRITERS["target"]),
    ]
    return "".join(drawn) + tag("text", "".join(spans), x=n(x), y=PAD + 13)


def lanes(group: Group, name: str, zoomable: bool) -> str:
    return "".join(
        tag(
            "g",
            "".join(bar(shape, lane, name, zoomable) for shape in lane.shapes),
            cls="lane",
            data_device=lane.name,
        )
        for lane in group.lanes
    )


def markup(figure: Figure, zoomable: bool = False) -> str:
    """The SVG of a layout. Pattern ids carry a checksum: several figures may share a page."""
    name = f"s{crc32(repr(figure.groups).encode()):08x}"
    runs = [
        lanes(g, name, zoomable) + lines(g, zoomable) + rows(g, zoomable)
        for g in figure.groups
    ]
    plot = "".join(tag("g", run, cls="run") for run in runs)
    height = max(g.y + g.height for g in figure.groups)
    plot = tag(
        "svg",
        tag("g", plot),
        cls="plot",
        x=LEFT,
        y="0",
        width=n(figure.frame.plot),
        height=n(height),
        overflow="hidden",
    )
    wide, high = n(figure.frame.width), n(figure.height)
    card = tag("rect", width=wide, height=high, rx="8", fill="#fff")
    sides = "".join(names(g, figure) for g in figure.groups)
    body = (
        patterns(name)
        + card
        + legend(figure, name)
        + sides
        + plot
        + axis(figure, zoomable)
    )
    return tag(
        "svg",
        body,
        xmlns="http://www.w3.org/2000/svg",
        width=wide,
        height=high,
        viewBox=f"0 0 {wide} {high}",
        font_family=FONTS,
        font_size=FONT,
        style="max-width:100%;height:auto",
    )


def render(
    runs: list[Run],
    width: float = 1100,
    until: float | None = None,
    zoomable: bool = False,
) -> str:
    """SVG of ``runs`` stacked on one axis of at most ``until`` seconds; ``width`` in pixels."""
    levels = LEVELS if zoomable else (1,)
    return markup(layout(runs, width, until, levels), zoomable)
