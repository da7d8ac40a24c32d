"""SVG shapes and texts for the workbench's pictures; ``drawing.svg`` has more."""

from __future__ import annotations

from typing import Any

from speclib.drawing.display import MimeBundle, notebook_forms
from speclib.drawing.svg import INK, NAMESPACE, card, coordinate, shape, tag, text_at
from speclib.drawing.text_in_pictures import text_width

GRID = "#e3e3e3"  # grid lines of a chart


def point(x: float, y: float) -> str:
    """Two coordinates in the syntax of a path or a transformation."""
    return f"{coordinate(x)} {coordinate(y)}"


def centred(text: str, x: float, y: float, **attributes: str | float) -> str:
    """A dark line of text, centred at ``x``."""
    return text_at(text, x, y, text_anchor="middle", **{"fill": INK, **attributes})


def title_at(text: str, x: float, y: float, size: int = 17) -> str:
    """The title of a picture or of a part of one."""
    return text_at(text, x, y, fill=INK, font_size=size, font_weight="600")


def circle(x: float, y: float, radius: float, **attributes: Any) -> str:
    """A circle around (x, y); for attributes see ``drawing.svg.shape``."""
    return shape("circle", cx=x, cy=y, r=radius, **attributes)


def dots(name: str, colour: str) -> str:
    """A pattern of dots on white."""
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
    """A picture to embed in a page, where SVG needs no namespace."""
    return svg.replace(f' xmlns="{NAMESPACE}"', "", 1)


def start_that_fits(text: str, most_width: float) -> str:
    """The longest prefix of ``text`` that is at most ``most_width`` pixels wide."""
    shown = ""
    for letter in text:
        if text_width(shown + letter) > most_width:
            break
        shown += letter
    return shown


class Still:
    """A static picture on a white card.

    A subclass defines ``size``, ``drawing()`` and ``__repr__``, the picture in words.
    """

    size: tuple[int, int]  # pixels

    def drawing(self) -> str:
        """The SVG elements on the card."""
        raise NotImplementedError

    def picture(self) -> str:
        """The picture as SVG."""
        return card(self.drawing(), *self.size)

    def _repr_mimebundle_(self, **_: object) -> MimeBundle:
        return notebook_forms(self.picture(), self.size, repr(self))
