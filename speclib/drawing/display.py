"""Turns a picture into PNG bytes, and into the forms that a notebook displays.

resvg converts SVG to PNG, without a browser. It draws text with the fonts that it is
given or finds on the machine; without a font it silently omits the text. So speclib
depends on a package with a font (font-source-sans-pro). Characters that this font lacks
(it covers Latin, Greek and Cyrillic) are drawn with the machine's fonts; only then can
the bytes differ between machines.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any, TypeAlias

from speclib.errors import naming_extras

from .text_in_pictures import font_files

SCALE = 2  # pixels of a PNG per pixel of its SVG: sharp when projected
NOTEBOOK_SCALE = 1  # smaller in a notebook, which stores every PNG that it displays

# The characters that the font covers: Latin, Greek, Cyrillic, and punctuation.
COVERED = re.compile("[\u0000-\u052f\u1e00-\u22ff]*")

# What a notebook displays, and its metadata, both by MIME type.
MimeBundle: TypeAlias = tuple[dict[str, Any], dict[str, Any]]


def png(svg: str, scale: float = SCALE) -> bytes:
    """The picture ``svg`` as PNG bytes, ``scale`` pixels per pixel of the SVG."""
    with naming_extras("a PNG"):
        from resvg_py import svg_to_bytes
    image = svg_to_bytes(
        svg_string=svg,
        zoom=scale,
        font_files=font_files(),
        sans_serif_family="Source Sans Pro",
        skip_system_fonts=COVERED.fullmatch(svg) is not None,
    )
    return bytes(image)


def notebook_forms(svg: str, size: tuple[int, int], text: str) -> MimeBundle:
    """The MIME forms of a picture in a notebook, and their metadata.

    The forms are a PNG and, if no picture can be displayed, ``text``. ``size``: the
    displayed width and height of the PNG, in pixels.
    """
    width, height = size
    image = b64encode(png(svg, NOTEBOOK_SCALE)).decode()
    forms = {"text/plain": text, "image/png": image}
    metadata = {"image/png": {"width": width, "height": height}}
    return forms, metadata


class NotebookView:
    """A widget that can also be displayed as a still picture or as text.

    A saved notebook loses its widgets, and an untrusted notebook shows none. So the
    notebook gets three forms at once, the widget, a PNG and plain text, and displays
    the richest form that it can.

    A subclass is also a widget, and defines ``size``, ``picture()`` and ``text()``.
    """

    model_id: str  # the id by which the notebook finds the widget

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of the still picture, in pixels."""
        raise NotImplementedError

    def picture(self) -> str:
        """The SVG to display if no widget can run."""
        raise NotImplementedError

    def text(self) -> str:
        """The view in words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: object) -> MimeBundle:
        """The three forms by MIME type, and the size at which the PNG is displayed."""
        forms, metadata = notebook_forms(self.picture(), self.size, self.text())
        forms["application/vnd.jupyter.widget-view+json"] = {
            "version_major": 2,
            "version_minor": 0,
            "model_id": self.model_id,
        }
        return forms, metadata
