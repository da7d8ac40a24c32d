"""What a test reads from a finished SVG picture: elements, rectangles, texts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import NamedTuple

NAMESPACE = "{http://www.w3.org/2000/svg}"


class Rectangle(NamedTuple):
    """A rectangle with its class; pixels."""

    kind: str
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


def elements(svg: str, name: str, *kinds: str) -> list[ET.Element]:
    """The elements of this name, in their order; only those of a class in ``kinds``."""
    matching = []
    for element in ET.fromstring(svg).iter(NAMESPACE + name):
        if not kinds or element.get("class") in kinds:
            matching.append(element)
    return matching


def number(element: ET.Element, attribute: str) -> float:
    """An attribute's value."""
    return float(element.get(attribute))


def rectangles(svg: str, *kinds: str) -> list[Rectangle]:
    """The rectangles of these classes, in their order."""
    boxes = []
    for element in elements(svg, "rect", *kinds):
        sides = [number(element, side) for side in ("x", "y", "width", "height")]
        boxes.append(Rectangle(element.get("class"), *sides))
    return boxes


def centres(svg: str) -> list[tuple[float, float]]:
    """(x, y) of the middles of all circles, in their order; pixels."""
    circles = elements(svg, "circle")
    return [(number(circle, "cx"), number(circle, "cy")) for circle in circles]


def texts(svg: str) -> list[str]:
    """All texts, each with its parts joined."""
    return ["".join(text.itertext()) for text in elements(svg, "text")]


def tooltips(svg: str) -> list[str]:
    """What appears under the pointer, in the order of the elements."""
    return [title.text for title in elements(svg, "title")]
