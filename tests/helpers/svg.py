"""Reads elements, rectangles and texts from a finished SVG picture."""

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
    """Returns the elements of this name, in order; only classes in ``kinds`` if any."""
    matching = []
    for element in ET.fromstring(svg).iter(NAMESPACE + name):
        if not kinds or element.get("class") in kinds:
            matching.append(element)
    return matching


def number(element: ET.Element, attribute: str) -> float:
    """Returns an attribute's value."""
    return float(element.get(attribute))


def rectangles(svg: str, *kinds: str) -> list[Rectangle]:
    """Returns the rectangles of these classes, in order."""
    boxes = []
    for element in elements(svg, "rect", *kinds):
        sides = [number(element, side) for side in ("x", "y", "width", "height")]
        boxes.append(Rectangle(element.get("class"), *sides))
    return boxes


def centres(svg: str) -> list[tuple[float, float]]:
    """Returns the centres (x, y) of all circles, in order, in pixels."""
    circles = elements(svg, "circle")
    return [(number(circle, "cx"), number(circle, "cy")) for circle in circles]


def texts(svg: str) -> list[str]:
    """Returns all texts, each with its parts joined."""
    return ["".join(text.itertext()) for text in elements(svg, "text")]


def tooltips(svg: str) -> list[str]:
    """Returns the texts shown under the pointer, in the order of their elements."""
    return [title.text for title in elements(svg, "title")]
