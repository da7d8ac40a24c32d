"""The contrast between a picture's text and its background.

It is WCAG 2's contrast ratio, (L1 + 0.05) / (L2 + 0.05), where L1 is the lighter and L2
the darker relative luminance. WCAG requires 4.5 for text and 3 for shapes.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

NAMESPACE = "{http://www.w3.org/2000/svg}"
TRANSLATION = re.compile(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)")
Colours = tuple[str, ...]  # a pattern has several


class Shown(NamedTuple):
    """A text with the colours of its letters and of its background."""

    text: str
    ink: str
    behind: Colours

    @property
    def contrast(self) -> float:
        """The lowest contrast with any colour of the background."""
        return min(contrast(self.ink, colour) for colour in self.behind)


class Box(NamedTuple):
    """An opaque rectangle."""

    left: float
    top: float
    right: float
    bottom: float
    colours: Colours

    def covers(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.top <= y <= self.bottom


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance of "#rgb" or "#rrggbb"."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    red, green, blue = (_light(digits[start : start + 2]) for start in (0, 2, 4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _light(channel: str) -> float:
    """The linear light of one channel, given as two hexadecimal digits."""
    share = int(channel, 16) / 255
    if share <= 0.04045:
        return share / 12.92
    return ((share + 0.055) / 1.055) ** 2.4


def contrast(first: str, second: str) -> float:
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def texts_of(svg: str) -> list[Shown]:
    """Every visible text of a picture, with the background at its anchor."""
    root = ET.fromstring(svg)
    patterns = _patterns(root)
    boxes: list[Box] = []  # drawn so far
    texts = []
    for element, ink, x, y in _walk(root, "#000", 0.0, 0.0):
        if element.tag == f"{NAMESPACE}rect":
            colours = _colours(element.get("fill", ""), patterns)
            if colours and _opacity(element) > 0.8:
                boxes.append(_box(element, x, y, colours))

        elif element.tag == f"{NAMESPACE}text" and element.get("display") != "none":
            words = "".join(element.itertext()).strip()
            if words and ink.startswith("#"):
                place = _middle_of_first_letter(element, x, y)
                texts.append(Shown(words, ink, _behind(place, boxes)))
    return texts


def _walk(
    element: ET.Element, ink: str, x: float, y: float
) -> Iterator[tuple[ET.Element, str, float, float]]:
    """Yields all elements except definitions, each with its colour and origin."""
    if element.tag == f"{NAMESPACE}defs" or element.get("visibility") == "hidden":
        return
    ink = element.get("fill", ink)
    moved = TRANSLATION.match(element.get("transform", ""))
    if moved:
        x += float(moved[1])
        y += float(moved[2])

    yield element, ink, x, y
    for child in element:
        yield from _walk(child, ink, x, y)


def _patterns(root: ET.Element) -> dict[str, Colours]:
    """Returns the colours of each pattern, by the reference that elements use."""
    patterns = {}
    for pattern in root.iter(f"{NAMESPACE}pattern"):
        colours = []
        for part in pattern.iter():
            colours += [part.get("fill"), part.get("stroke")]
        named = [c for c in colours if c and c.startswith("#")]
        patterns[f"url(#{pattern.get('id')})"] = tuple(named)
    return patterns


def _opacity(element: ET.Element) -> float:
    fill_opacity = float(element.get("fill-opacity", 1))
    return fill_opacity * float(element.get("opacity", 1))


def _box(rectangle: ET.Element, x: float, y: float, colours: Colours) -> Box:
    """The box of a rectangle whose origin is at ``x`` and ``y``."""
    left = x + float(rectangle.get("x", 0))
    top = y + float(rectangle.get("y", 0))
    right = left + float(rectangle.get("width"))
    bottom = top + float(rectangle.get("height"))
    return Box(left, top, right, bottom, colours)


def _colours(fill: str, patterns: dict[str, Colours]) -> Colours:
    if fill.startswith("#"):
        return (fill,)
    return patterns.get(fill, ())


def _middle_of_first_letter(
    text: ET.Element, x: float, y: float
) -> tuple[float, float]:
    """Returns a point roughly in the middle of the first letter."""
    shift = {"middle": 0.0, "end": -4.0}.get(text.get("text-anchor", ""), 4.0)
    return x + float(text.get("x", 0)) + shift, y + float(text.get("y", 0)) - 5


def _behind(place: tuple[float, float], boxes: list[Box]) -> Colours:
    """The colours of the topmost box at a point; the page is white."""
    for box in reversed(boxes):
        if box.covers(*place):
            return box.colours
    return ("#fff",)
