"""The elements of every SVG picture, and the card behind it.

A picture is self-contained: colours and fonts are attributes, and tooltips are
``<title>`` elements. Coordinates are pixels from the card's upper left corner, y
downwards. An element's ``kind`` becomes its class, which tests and style sheets use.
This module knows nothing about the data.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape
from zlib import crc32

from .text_in_pictures import FONT_SIZE

# A browser uses the first of these that it finds; PNGs use Source Sans Pro.
FONT_FAMILIES = (
    "'Source Sans Pro','Source Sans 3','Helvetica Neue',Arial,'Noto Sans',sans-serif"
)
NAMESPACE = "http://www.w3.org/2000/svg"  # marks a file as SVG
PAD = 16  # pixels between a card's edge and its content
INK = "#1a1a1a"  # main text
QUIET = "#5a5a5a"  # secondary text

# Colours of a timeline's boxes by kind. They are Okabe and Ito's, which colour-blind
# readers can tell apart.
KIND_COLOURS = {
    "accepted": "#009E73",
    "rejected": "#D55E00",
    "discarded": "#F0E442",
    "dropped": "#f7f2c4",
    "score": "#0072B2",
    "unused": "#9CC7E4",
    "message": "#CC79A7",
    "idle": "#f3f3f3",
    "lost": "#4d4d4d",
}
# Colours of text, by the model that wrote it; "cut" marks text that is left out.
WRITER_COLOURS = {"draft": "#00795a", "target": "#0072B2", "cut": QUIET}
# Without colour, an underline marks the target's own words.
WRITER_MARKS = {"target": {"text_decoration": "underline"}}

# Outlines of boxes that are too pale to see on the white card without one.
OUTLINES = {
    "discarded": "#8a7f00",
    "dropped": "#8a7f00",
    "unused": "#4f86ac",
    "idle": "#8f8f8f",
}

ESCAPED_QUOTE = {'"': "&quot;"}


def coordinate(value: float) -> str:
    """A number of pixels with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def tag(name: str, inner: str = "", **attributes: object) -> str:
    """One element: ``tag("text", "hello", font_size=14)``.

    ``inner`` is SVG. Underscores in attribute names become hyphens, ``cls`` becomes
    ``class``, floats get at most two decimals, and texts are escaped.
    """
    opening = name
    for key, value in attributes.items():
        attribute = "class" if key == "cls" else key.replace("_", "-")
        if isinstance(value, float):
            text = coordinate(value)
        else:
            text = escape(str(value), ESCAPED_QUOTE)
        opening += f' {attribute}="{text}"'

    if not inner:
        return f"<{opening}/>"
    return f"<{opening}>{inner}</{name}>"


def text_at(text: str, x: float, y: float, **attributes: object) -> str:
    """A line of text; ``y`` is its baseline."""
    return tag("text", escape(text), x=x, y=y, **attributes)


def shape(name: str, *, kind: str = "", tip: str = "", **attributes: object) -> str:
    """An element other than text; its ``tip`` appears under the pointer."""
    classes = {"cls": kind} if kind else {}
    tooltip = tag("title", escape(tip)) if tip else ""
    return tag(name, tooltip, **classes, **attributes)


def rectangle(
    x: float, y: float, width: float, height: float, **attributes: Any
) -> str:
    """A rectangle with upper left corner (x, y); for attributes see ``shape``."""
    return shape("rect", x=x, y=y, width=width, height=height, **attributes)


def horizontal_line(y: float, left: float, right: float, **attributes: Any) -> str:
    """A line; for attributes see ``shape``."""
    return shape("line", x1=left, x2=right, y1=y, y2=y, **attributes)


def vertical_line(x: float, top: float, bottom: float, **attributes: Any) -> str:
    """A line; for attributes see ``shape``."""
    return shape("line", x1=x, x2=x, y1=top, y2=bottom, **attributes)


def card(body: str, width: float, height: float, definitions: str = "") -> str:
    """The SVG of a white card with ``body`` on it, at most as wide as the page.

    ``definitions`` are patterns that the body refers to by name.
    """
    background = tag("rect", width=width, height=height, rx="8", fill="#fff")
    return tag(
        "svg",
        definitions + background + body,
        xmlns=NAMESPACE,
        width=width,
        height=height,
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        font_family=FONT_FAMILIES,
        font_size=FONT_SIZE,
        fill=QUIET,
        style="max-width:100%;height:auto",
    )


def unique_name(prefix: str, content: object) -> str:
    """A name for a picture's patterns that is unique on its page.

    It depends on the names of ``content``'s fields, so renaming a field changes stored
    pictures.
    """
    return f"{prefix}{crc32(repr(content).encode()):08x}"


def hatch_patterns(name: str) -> str:
    """The definitions of the hatched fills: ``{name}-idle`` and so on.

    They show a draft's outcome without colour: accepted drafts are plain, rejected ones
    have white falling stripes, discarded ones dark rising stripes. Waiting is hatched
    in light grey. Two pictures on one page need different names.
    """
    idle = hatch(f"{name}-idle", KIND_COLOURS["idle"], "#d0d0d0", 12)
    discarded = hatch(f"{name}-discarded", KIND_COLOURS["discarded"], "#b3a400", 6)
    rejected = rejected_hatch(f"{name}-rejected", size=5)
    return tag("defs", idle + discarded + rejected)


def hatch(name: str, ground: str, stripe: str, size: int, angle: int = 45) -> str:
    """A fill of diagonal stripes, ``size`` pixels apart."""
    background = tag("rect", width=size, height=size, fill=ground)
    line = tag("line", y1=0, x2=0, y2=size, stroke=stripe, stroke_width=2)
    return tag(
        "pattern",
        background + line,
        id=name,
        width=size,
        height=size,
        patternUnits="userSpaceOnUse",
        patternTransform=f"rotate({angle})",
    )


def rejected_hatch(name: str, size: int = 6) -> str:
    """The fill of rejected drafts: white falling stripes."""
    return hatch(name, KIND_COLOURS["rejected"], "#fff", size, angle=-45)
