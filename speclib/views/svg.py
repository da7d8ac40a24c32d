"""The elements that every SVG picture is made of, as text, and the colours they have.

A picture is complete in itself: colours and fonts are attributes, and tooltips are
``<title>`` elements. Coordinates are pixels. Knows no data.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

# The first of these that a reader's machine has is used; PNGs have Source Sans Pro.
FONTS = (
    "'Source Sans Pro','Source Sans 3','Helvetica Neue',Arial,'Noto Sans',sans-serif"
)
PAD = 16  # between a card's edge and what stands on it
INK = "#1a1a1a"  # what is to be read
QUIET = "#5a5a5a"  # what stands beside it

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = {
    "accepted": "#009E73",
    "rejected": "#D55E00",
    "wasted": "#F0E442",
    "dropped": "#f7f2c4",
    "score": "#0072B2",
    "unused": "#9CC7E4",
    "idle": "#f3f3f3",
    "lost": "#4d4d4d",
}
# Colours of text, by the model that wrote it; "cut" stands for text that was left out.
WRITERS = {"draft": "#00795a", "target": "#0072B2", "cut": QUIET}

ESCAPED_QUOTE = {'"': "&quot;"}


def n(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def tag(name: str, inner: str = "", **attributes: object) -> str:
    """One element: ``tag("text", "hello", font_size=14)``.

    ``inner`` is SVG. Underscores in attributes' names become hyphens, ``cls`` becomes
    ``class``, and values are escaped.
    """
    opening = name
    for key, value in attributes.items():
        attribute = "class" if key == "cls" else key.replace("_", "-")
        opening += f' {attribute}="{escape(str(value), ESCAPED_QUOTE)}"'

    if not inner:
        return f"<{opening}/>"
    return f"<{opening}>{inner}</{name}>"


def words(text: str, x: float, y: float, **attributes: object) -> str:
    """A line of text; ``y`` is its baseline."""
    return tag("text", escape(text), x=n(x), y=n(y), **attributes)


def patterns(name: str) -> str:
    """The definitions of two hatched fills, ``{name}-idle`` and ``{name}-wasted``.

    Waiting is hatched in light grey, wasted drafts in dark stripes on yellow. Two
    pictures on one page need different names.
    """
    idle = hatch(f"{name}-idle", COLOURS["idle"], "#d9d9d9", 7)
    wasted = hatch(f"{name}-wasted", COLOURS["wasted"], "#c9b800", 6)
    return tag("defs", idle + wasted)


def hatch(name: str, ground: str, stripe: str, size: int) -> str:
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
        patternTransform="rotate(45)",
    )
