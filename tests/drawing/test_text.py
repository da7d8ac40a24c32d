"""Text in pictures has enough room, and is written on one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from speclib.drawing.text_in_pictures import (
    TextPart,
    end_that_fits,
    one_line,
    text_width,
)

README = Path(__file__).parents[2] / "README.md"
# Letters by their width in Helvetica, in thousandths of the font size. These are
# Adobe's metrics, which Arial and Liberation Sans share.
HELVETICA = {
    191: "'",
    222: "ijl",
    260: "|",
    278: " !,./:;I[\\]ft",
    333: "()-`r",
    334: "{}",
    355: '"',
    389: "*",
    469: "^",
    500: "Jcksvxyz",
    556: "#$0123456789?L_abdeghnopqu",
    584: "+<=>~",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1015: "@",
}


def width_in_helvetica(text: str, size: float) -> float:
    """Returns the width in pixels."""
    width_of = {}
    for width, letters in HELVETICA.items():
        for letter in letters:
            width_of[letter] = width
    return sum(width_of[letter] for letter in text) * size / 1000


@pytest.mark.parametrize("size", [12, 14, 17])
def test_every_word_has_room_in_a_browser_with_helvetica_or_arial(size):
    words = [word for word in README.read_text().split() if word.isascii()]
    assert len(words) > 500
    for word in words:
        assert width_in_helvetica(word, size) <= text_width(word, size) + 2


def test_room_is_not_wasted():
    """A fifth more than Helvetica needs would omit text that fits."""
    text = " ".join(re.findall(r"[ -~]+", README.read_text()))
    assert text_width(text) < 1.2 * width_in_helvetica(text, 14)


def test_letters_missing_in_the_font_have_room_and_accents_need_none():
    assert text_width("数") >= 14
    assert text_width("e\u0301") == text_width("e")


def test_a_text_that_is_too_long_is_cut_at_its_start_and_marked_with_dots():
    parts = [TextPart("draft", "a long beginning"), TextPart("target", " end")]
    everything = text_width("a long beginning end")
    assert end_that_fits(parts, everything + 1) == parts
    assert end_that_fits(parts, everything - 1) == [TextPart("cut", "…"), parts[1]]
    assert end_that_fits(parts, text_width("… ")) == [TextPart("cut", "…")]
    assert end_that_fits(parts, text_width("…") - 1) == []


def test_a_token_is_one_line_with_visible_blanks_and_no_control_characters():
    assert one_line("a\n\tb") == "a\\n\\tb"
    assert one_line("  ") == "\u00a0\u00a0"
    assert one_line("\x00") == "\ufffd"
    assert one_line("क\u200dष") == "क\u200dष"
