"""A picture as a file for other programs: it looks the same where our font is missing.

An SVG names fonts, and another machine may have none of them. So the letters that a
picture needs go with it. In an SVG they stand as a font of its own, which browsers
read. In a PDF they are embedded, which every program reads. typst converts SVG to PDF
with the library (usvg) that draws our PNGs, so that patterns and letters come out
alike. Knows no picture in particular.
"""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import UTC, datetime
from functools import lru_cache
from html import unescape
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from fontTools import subset
from fontTools.ttLib import TTFont

from speclib.drawing.svg import tag
from speclib.drawing.text_in_pictures import font_files
from speclib.errors import SpeclibError

WEIGHTS = (400, 600)  # of the font's two faces, as pictures ask for them
FONT_FACE = (
    "@font-face{{font-family:'Source Sans Pro';font-weight:{weight};"
    "src:url(data:font/woff;base64,{data}) format('woff')}}"
)
# Latin, Greek, punctuation and mathematical signs: all that a lesson's pictures need.
# A picture with other letters is right as well, but takes the slow way in `font_of`.
COMMON_CODES = (*range(0x20, 0x180), *range(0x370, 0x400), *range(0x2000, 0x2300))
COMMON_LETTERS = "".join(map(chr, COMMON_CODES))
# What typst is told: a page as large as its picture.
PAGE = '#set page(width: auto, height: auto, margin: 0pt)\n#image("picture.svg")\n'
# A PDF says when it was made. With a fixed time the same picture is the same file.
MADE = datetime(2026, 1, 1, tzinfo=UTC)


def svg_with_font(svg: str) -> str:
    """The picture ``svg`` with the letters that it needs, as a font that it holds."""
    letters = letters_of(svg)
    faces = []
    for weight, file in zip(WEIGHTS, font_files(), strict=True):
        data = b64encode(font_of(letters, file)).decode()
        faces.append(FONT_FACE.format(weight=weight, data=data))
    style = tag("defs", tag("style", "".join(faces)))
    opening_tag, rest = svg.split(">", 1)
    return f"{opening_tag}>{style}{rest}"


def letters_of(svg: str) -> str:
    """The different letters of a picture's texts, in alphabetical order."""
    texts = re.sub(r"<[^>]*>", "", svg)
    # A line's end is not drawn; with it in the set no picture would take the quick way.
    letters = set(unescape(texts)) - {"\n"}
    return "".join(sorted(letters))


def font_of(letters: str, file: str) -> bytes:
    """A WOFF font that has these letters of the font in ``file``, and no others."""
    if set(letters) <= set(COMMON_LETTERS):
        return subset_of(common_letters_of(file), letters, flavor="woff")
    return subset_of(Path(file).read_bytes(), letters, flavor="woff")


@lru_cache
def common_letters_of(file: str) -> bytes:
    """A small font, of the common letters of the one in ``file``.

    Cutting a picture's font from this small one is faster than from the whole.
    """
    return subset_of(Path(file).read_bytes(), COMMON_LETTERS, flavor=None)


def subset_of(font_file: bytes, letters: str, *, flavor: str | None) -> bytes:
    """The font that has these letters of a font; ``flavor``: None for OpenType."""
    font = TTFont(BytesIO(font_file), recalcTimestamp=False)
    subsetter = subset.Subsetter()
    subsetter.populate(text=letters)
    subsetter.subset(font)
    font.flavor = flavor
    content = BytesIO()
    font.save(content)
    return content.getvalue()


def pdf(svg: str) -> bytes:
    """The picture ``svg`` as a PDF of one page, with its letters embedded.

    Raises SpeclibError where typst is not installed.
    """
    try:
        import typst
    except ImportError as error:
        raise SpeclibError(
            "a PDF needs typst, which is not installed: pip install typst"
        ) from error

    folders = sorted({str(Path(file).parent) for file in font_files()})
    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.typ"
        page.write_text(PAGE, "utf-8")
        page.with_name("picture.svg").write_text(svg, "utf-8")
        content = typst.compile(
            str(page), font_paths=folders, ignore_system_fonts=True, timestamp=MADE
        )
    assert isinstance(content, bytes)
    return content
