"""What still pictures share: the card they stand on, and how a notebook shows them.

Knows no data. A subclass has ``size``, ``drawing()`` and a ``__repr__`` that says it in
words.
"""

from __future__ import annotations

from base64 import b64encode

from speclib.views.png import png
from speclib.views.timeline.shapes import FONT
from speclib.views.timeline.svg import FONTS, QUIET, tag


class Still:
    size: tuple[int, int]  # pixels

    def drawing(self) -> str:
        """The SVG elements on the card."""
        raise NotImplementedError

    def picture(self) -> str:
        """SVG."""
        wide, high = self.size
        card = tag("rect", width=wide, height=high, rx="8", fill="#fff")
        return tag(
            "svg",
            card + self.drawing(),
            xmlns="http://www.w3.org/2000/svg",
            width=wide,
            height=high,
            viewBox=f"0 0 {wide} {high}",
            font_family=FONTS,
            font_size=FONT,
            fill=QUIET,
        )

    def _repr_mimebundle_(self, **_) -> tuple[dict, dict]:
        width, height = self.size
        image = b64encode(png(self.picture(), 1.5)).decode()
        return (
            {"text/plain": repr(self), "image/png": image},
            {"image/png": {"width": width, "height": height}},
        )
