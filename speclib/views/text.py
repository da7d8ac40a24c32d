"""Text in pictures: its font, the room that it takes, and how a token is written.

Knows no markup and no notebook.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from speclib.errors import SpeclibError

FONT = 14  # pixels, of tokens; headings are larger, nothing is below 13
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
def text_width(text: str, size: float = FONT) -> float:
    """Pixels, an upper estimate."""

    def one(letter: str) -> int:
        if unicodedata.combining(letter):
            return 0
        return WIDTHS.get(letter) or (
            1000 if unicodedata.east_asian_width(letter) in "WF" else 600
        )

    return sum(map(one, text)) * size / 1000


def fitting(parts: list[tuple[str, str]], room: float) -> list[tuple[str, str]]:
    """The end of a text that fits into ``room`` pixels, after dots if it was cut.

    ``parts`` of the text are (kind, text); a part is kept or left out as a whole.
    The dots are of kind "cut".
    """
    whole_text = "".join(text for _, text in parts)
    if text_width(whole_text) <= room:
        return parts

    kept: list[tuple[str, str]] = []
    width = text_width("…")
    for kind, text in reversed(parts):
        width += text_width(text)
        if width > room:
            break
        kept.insert(0, (kind, text))
    return [("cut", "…"), *kept]


def shown(text: str) -> str:
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


def label_of(text: str) -> str:
    """What a cell shows: the token without its blanks, or dots if it is all blanks."""
    return shown(text.strip(" ") or "·" * min(len(text), 4))
