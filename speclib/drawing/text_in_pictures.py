"""Text in pictures: its font, its width, and the spelling of tokens.

This module uses no markup and no notebook.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from fontTools.ttLib import TTFont

FONT_SIZE = 14  # pixels, for tokens; headings are larger, nothing is smaller than 13
FACES = ("SourceSansPro-Regular.ttf", "SourceSansPro-Semibold.ttf")
JOINERS = "\u200c\u200d"  # not printable, but Indic scripts need them

# A browser without Source Sans Pro uses the next font in svg.FONT_FAMILIES. So a text
# gets enough width for any of them: its width in Source Sans Pro times a safety factor.
# In Arial (as wide as Helvetica) and Noto Sans, lowercase letters are at most about 1.1
# times as wide, and capitals up to 1.3 times. With these factors no word in this
# repository is more than 2 pixels wider than estimated. A browser with none of the
# fonts may choose a wider one.
LOWERCASE_SAFETY = 1.12
SAFETY = 1.25  # for capitals, digits and signs
# Characters that are even wider in Arial or Noto Sans, in shares of the font size.
WIDER_ELSEWHERE = {" ": 0.28, "\u00a0": 0.28, "|": 0.56, "¦": 0.56}
# Letters that Source Sans Pro lacks: wide ones (Chinese) and others.
WIDE_LETTER = 1.0
OTHER_LETTER = 0.6


class TextPart(NamedTuple):
    """A piece of text in one style; ``kind`` says which."""

    kind: str
    text: str


@lru_cache
def font_files() -> list[str]:
    """Paths of the font's regular and semibold faces."""
    folder = files("font_source_sans_pro") / "files"
    return [str(folder / face) for face in FACES]


@lru_cache
def advance_widths() -> dict[str, float]:
    """Maps letters to their widths in the regular face, as shares of the font size."""
    widths = {}
    with TTFont(font_files()[0], lazy=True) as font:
        metrics = font["hmtx"]
        units_per_size = font["head"].unitsPerEm
        for code, glyph in font.getBestCmap().items():
            advance, _left_bearing = metrics[glyph]
            widths[chr(code)] = advance / units_per_size
    return widths


@lru_cache(maxsize=1 << 14)
def text_width(text: str, size: float = FONT_SIZE) -> float:
    """The most pixels that a text takes in any font of ``svg.FONT_FAMILIES``."""
    return sum(letter_width(letter) for letter in text) * size


@lru_cache(maxsize=1 << 10)
def letter_width(letter: str) -> float:
    """The greatest width of a letter in any font, as a share of the font size."""
    if letter in WIDER_ELSEWHERE:
        return WIDER_ELSEWHERE[letter]
    if letter in advance_widths():
        safety = LOWERCASE_SAFETY if letter.islower() else SAFETY
        return safety * advance_widths()[letter]
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in ("W", "F"):
        return WIDE_LETTER
    return OTHER_LETTER


def end_that_fits(parts: Sequence[TextPart], most_width: float) -> list[TextPart]:
    """The end of a text, as much as fits into ``most_width`` pixels.

    Each part is shown whole or left out. If any is left out, dots of the kind "cut"
    come first; if not even these fit, the result is empty.
    """
    whole_text = "".join(part.text for part in parts)
    if text_width(whole_text) <= most_width:
        return list(parts)

    width = text_width("…")
    if width > most_width:
        return []

    shown: list[TextPart] = []
    for part in reversed(parts):
        width += text_width(part.text)
        if width > most_width:
            break
        shown.insert(0, part)
    return [TextPart("cut", "…"), *shown]


@lru_cache(maxsize=1 << 14)
def one_line(text: str) -> str:
    """A token's text on one line.

    Newlines and tabs are spelled out, spaces stay, and control characters become
    replacement characters.
    """
    text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return "".join(map(printable, text))


def printable(letter: str) -> str:
    if letter.isspace():
        return "\u00a0"  # SVG would collapse several spaces into one
    if letter.isprintable() or letter in JOINERS:
        return letter
    return "\ufffd"


def token_label(text: str) -> str:
    """A cell's label: the token without its spaces, or dots if it is only spaces."""
    return one_line(text.strip(" ") or "·" * min(len(text), 4))
