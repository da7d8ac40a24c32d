"""Text in pictures: its font, the room that it takes, and how a token is written.

Knows no markup and no notebook.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from speclib.errors import SpeclibError

FONT_SIZE = 14  # pixels, of tokens; headings are larger, nothing is below 13
FACES = ("SourceSansPro-Regular.ttf", "SourceSansPro-Semibold.ttf")
JOINERS = "\u200c\u200d"  # not printable, but Indic scripts need them

# Widths of Helvetica's letters in thousandths of the font size.
LETTERS = {
    222: "'ijl|",
    278: " !,./:;I[]\\ft\u00a0",
    333: "()-`r",
    500: "cksvxyzJ",
    584: "+<=>~",
    611: "FLTZ",
    667: "ABEKPSVXY",
    722: "wCDHNRUG&",
    778: "OQ",
    833: "mM%",
    944: "W",
    1000: "@…",
}
WIDTHS = {letter: size for size, letters in LETTERS.items() for letter in letters}


class TextPart(NamedTuple):
    """A stretch of text that is written in one style; ``kind`` says which."""

    kind: str
    text: str


@lru_cache
def font_files() -> list[str]:
    """Paths of the font's regular and semibold faces."""
    package = find_spec("font_source_sans_pro")
    if package is None or package.origin is None:
        raise SpeclibError(
            "no font to draw text with: pip install font-source-sans-pro"
        )
    folder = Path(package.origin).parent / "files"
    return [str(folder / face) for face in FACES]


@lru_cache(maxsize=1 << 14)
def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Pixels, an upper estimate."""

    def one(letter: str) -> int:
        if unicodedata.combining(letter):
            return 0
        return WIDTHS.get(letter) or (
            1000 if unicodedata.east_asian_width(letter) in "WF" else 600
        )

    return sum(map(one, text)) * size / 1000


def end_that_fits(parts: Sequence[TextPart], room: float) -> list[TextPart]:
    """The end of a text that fits into ``room`` pixels, after dots if it was cut.

    A part is kept or left out as a whole. The dots are of kind "cut".
    """
    whole_text = "".join(part.text for part in parts)
    if text_width(whole_text) <= room:
        return list(parts)

    kept: list[TextPart] = []
    width = text_width("…")
    for part in reversed(parts):
        width += text_width(part.text)
        if width > room:
            break
        kept.insert(0, part)
    return [TextPart("cut", "…"), *kept]


def one_line(text: str) -> str:
    """A token's text on one line.

    Line ends and tabs are spelled out, blanks are kept, and control characters become
    replacement characters.
    """
    text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return "".join(map(printable, text))


def printable(letter: str) -> str:
    if letter.isspace():
        return "\u00a0"  # SVG would join several blanks into one
    if letter.isprintable() or letter in JOINERS:
        return letter
    return "\ufffd"


def token_label(text: str) -> str:
    """What a cell shows: the token without its blanks, or dots if it is all blanks."""
    return one_line(text.strip(" ") or "·" * min(len(text), 4))
