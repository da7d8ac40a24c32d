"""The pieces of an SVG picture that stands on a white card, and the card itself.

All coordinates are pixels from the card's upper left corner, y downwards. ``kind``
becomes the element's class: tests and style sheets find an element by it. Knows no
data.
"""

from __future__ import annotations

from xml.sax.saxutils import escape
from zlib import crc32

from speclib.views.svg import FONTS, QUIET, n, tag
from speclib.views.text import FONT

GRID = "#e3e3e3"  # colour of the lines that lead from an axis through a chart


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    kind: str = "",
    tip: str = "",
    **attributes: str | float,
) -> str:
    """A rectangle whose upper left corner is (x, y); ``tip`` appears under the
    pointer."""
    return tag(
        "rect",
        _tooltip(tip),
        **_class(kind),
        x=n(x),
        y=n(y),
        width=n(width),
        height=n(height),
        **attributes,
    )


def circle(
    x: float, y: float, radius: float, *, tip: str = "", **attributes: str | float
) -> str:
    """A circle around (x, y); ``tip`` appears under the pointer."""
    return tag("circle", _tooltip(tip), cx=n(x), cy=n(y), r=radius, **attributes)


def horizontal_line(
    y: float, left: float, right: float, **attributes: str | float
) -> str:
    return tag("line", "", x1=n(left), x2=n(right), y1=n(y), y2=n(y), **attributes)


def vertical_line(
    x: float, top: float, bottom: float, *, kind: str = "", **attributes: str | float
) -> str:
    return tag(
        "line",
        "",
        **_class(kind),
        x1=n(x),
        x2=n(x),
        y1=n(top),
        y2=n(bottom),
        **attributes,
    )


def card(body: str, width: int, height: int, definitions: str = "") -> str:
    """SVG of a white card, as wide as the page at most, with ``body`` on it.

    ``definitions`` are patterns that the body refers to by name.
    """
    background = tag("rect", width=width, height=height, rx="8", fill="#fff")
    return tag(
        "svg",
        definitions + background + body,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        font_family=FONTS,
        font_size=FONT,
        fill=QUIET,
        style="max-width:100%;height:auto",
    )


def unique_name(prefix: str, content: object) -> str:
    """A name for a picture's patterns that no other picture on the same page has."""
    return f"{prefix}{crc32(repr(content).encode()):08x}"


def _tooltip(tip: str) -> str:
    return tag("title", escape(tip)) if tip else ""


def _class(kind: str) -> dict[str, str]:
    return {"cls": kind} if kind else {}
