"""Shapes and texts that only the workbench's pictures need; see ``drawing.svg``."""

from __future__ import annotations

from typing import Any

from speclib.drawing.svg import NAMESPACE, coordinate, shape, tag
from speclib.drawing.text_in_pictures import text_width

GRID = "#e3e3e3"  # lines that lead from an axis through a chart


def point(x: float, y: float) -> str:
    """Two coordinates as a path or a transformation takes them."""
    return f"{coordinate(x)} {coordinate(y)}"


def circle(x: float, y: float, radius: float, **attributes: Any) -> str:
    """A circle around (x, y); attributes are as of ``drawing.svg.shape``."""
    return shape("circle", cx=x, cy=y, r=radius, **attributes)


def dots(name: str, colour: str) -> str:
    """A fill of dots on white."""
    ground = tag("rect", width=7, height=7, fill="#fff")
    dot = tag("circle", cx=3.5, cy=3.5, r=2, fill=colour)
    return tag(
        "pattern",
        ground + dot,
        id=name,
        width=7,
        height=7,
        patternUnits="userSpaceOnUse",
    )


def inline(svg: str) -> str:
    """A picture to stand inside a page, where SVG needs no name of its own."""
    return svg.replace(f' xmlns="{NAMESPACE}"', "", 1)


def start_that_fits(text: str, most_width: float) -> str:
    """As much of a text's start as fits into so many pixels."""
    shown = ""
    for letter in text:
        if text_width(shown + letter) > most_width:
            break
        shown += letter
    return shown
