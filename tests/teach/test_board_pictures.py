"""Pictures for the board: valid files with the words that a class should see.

SVG is read by Python's own parser, PDF by pypdf, embedded fonts by fontTools.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from io import BytesIO
from itertools import product
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from helpers import late
from helpers.svg import elements, number, texts

from speclab.teach.board_pictures import PICTURES, write_pictures
from speclab.views.printing import COMMON_LETTERS, font_of, letters_of, subset_of
from speclib.drawing.display import png
from speclib.drawing.text_in_pictures import font_files

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
ENDINGS = (".svg", ".pdf", ".png")
# What each picture must say, the kind of its numbers included where it has any.
WORDS = {
    "race": ("Plain decoding", "Speculative decoding", "draft", "target", "(virtual)"),
    "accept-bars": ("kept: min(p, q)", "rejected: q above p", "replaced: p above q"),
    "outcome-tree": ("drafted", "tested", "written", "accepted", "rejected"),
    "pearl": ("Speculative decoding", "PEARL", "discarded untested", "(virtual)"),
    "pearl-round": ("PEARL", "window", "post-verify", "row 1", "fails", "[virtual]"),
    "pearl-caches": ("draft", "target", "exact", "stale"),
    "speed-against-gamma": ("PEARL, c = 5", "PEARL, c = 10", "γ", "[formula]"),
    "dsi": ("DSI", "target-2", "target-3", "(virtual)"),
    "duodecoding": ("DuoDecoding", "CPU", "GPU", "(virtual)"),
    "sequences": ("the sequences", "its chance for the draft", "θ"),
    "tree": ("a tree of", "levels"),
    "layers": ("exact: one layer after the other", "fuzzy: N = 4", "(formula)"),
    "speed-against-c": ("PEARL, γ = c", "speculative, best γ", "[formula]"),
    "speed-against-acceptance": ("PEARL, γ = c", "DSI, 3 servers", "α", "[formula]"),
}
every_picture = pytest.mark.parametrize("name", PICTURES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all pictures."""
    folder = tmp_path_factory.mktemp("pictures")
    written = write_pictures(folder)
    wanted = {folder / (name + ending) for name, ending in product(PICTURES, ENDINGS)}
    assert set(written) == wanted
    return folder


def svg_of(folder: Path, name: str) -> str:
    return (folder / f"{name}.svg").read_text("utf-8")


def pdf_page(folder: Path, name: str):
    """The only page of a picture's PDF."""
    (page,) = late.pypdf.PdfReader(folder / f"{name}.pdf").pages
    return page


def without_blanks(text: str) -> str:
    """A PDF keeps where letters stand, and not always the blanks between words."""
    return re.sub(r"\s", "", text)


def test_the_words_of_every_picture_are_tested():
    assert WORDS.keys() == PICTURES.keys()


@every_picture
def test_it_belongs_to_a_lesson_that_there_is(name):
    lesson = PICTURES[name].lesson
    assert list((ROOT / "notebooks" / "learn").glob(f"{lesson}_*.ipynb"))


@every_picture
def test_the_svg_is_valid_and_says_what_it_should(folder, name):
    shown = " ".join(texts(svg_of(folder, name)))
    for words in WORDS[name]:
        assert words in shown


def fonts_in(svg: str) -> list[bytes]:
    """The font that a picture holds: its regular face, and its semibold one."""
    faces = re.findall(r"font-weight:(\d+);src:url\(data:font/woff;base64,(.+?)\)", svg)
    assert [weight for weight, _data in faces] == ["400", "600"]
    return [b64decode(data) for _weight, data in faces]


def without_font(svg: str) -> str:
    """The same picture as it was before it held a font."""
    return re.sub(r"<defs><style>.*?</style></defs>", "", svg)


def cut_of_whole_font(letters: str, file: str) -> bytes:
    """What the quick way, over a font of the common letters, should come to."""
    return subset_of(Path(file).read_bytes(), letters, flavor="woff")


@every_picture
def test_the_svg_holds_every_letter_that_it_needs_of_our_font(folder, name):
    svg = svg_of(folder, name)
    needed = set(map(ord, "".join(texts(svg))))
    for font, file in zip(fonts_in(svg), font_files(), strict=True):
        embedded = TTFont(BytesIO(font)).getBestCmap().keys()
        in_our_font = TTFont(file).getBestCmap().keys()
        assert embedded >= needed & in_our_font
        assert len(embedded) < len(in_our_font) / 4  # and not the whole font


@every_picture
def test_the_font_of_an_svg_is_the_one_that_a_cut_of_the_whole_one_would_be(
    folder, name
):
    svg = svg_of(folder, name)
    letters = letters_of(without_font(svg))
    assert set(letters) <= set(COMMON_LETTERS)
    for font, file in zip(fonts_in(svg), font_files(), strict=True):
        assert font == cut_of_whole_font(letters, file)


@pytest.mark.parametrize(
    "letters",
    ["PEARL, γ = 5 × 10", "fi fl ffi ff", "naïve Ångström, Dvořák", "a → b ← c ↔ d"],
    ids=["signs", "ligatures", "accents", "arrows"],
)
def test_common_letters_make_the_font_that_a_cut_of_the_whole_one_would(letters):
    assert set(letters) <= set(COMMON_LETTERS)
    for file in font_files():
        assert font_of(letters, file) == cut_of_whole_font(letters, file)


def test_letters_that_are_not_common_are_in_the_font_too():
    letters = "Aя"
    for file in font_files():
        font = TTFont(BytesIO(font_of(letters, file)))
        assert font.getBestCmap().keys() == set(map(ord, letters))


@every_picture
def test_the_font_that_an_svg_holds_does_not_change_how_it_is_drawn(folder, name):
    svg = svg_of(folder, name)
    bare_svg = without_font(svg)
    assert len(bare_svg) < len(svg)
    assert png(svg, scale=1) == png(bare_svg, scale=1)


@every_picture
def test_the_pdf_has_one_page_of_the_pictures_shape_and_says_the_same(folder, name):
    page = pdf_page(folder, name)
    (root,) = elements(svg_of(folder, name), "svg")[:1]
    shape = number(root, "width") / number(root, "height")
    width, height = page.mediabox.width, page.mediabox.height
    assert float(width) / float(height) == pytest.approx(shape, rel=0.01)

    shown = without_blanks(page.extract_text())
    for words in WORDS[name]:
        assert without_blanks(words) in shown


@every_picture
def test_every_font_of_the_pdf_is_our_own_and_embedded(folder, name):
    fonts = list(fonts_of(pdf_page(folder, name)))
    assert fonts
    for font in fonts:
        assert "SourceSansPro" in font["/BaseFont"]
        (descendant,) = font["/DescendantFonts"]
        descriptor = descendant.get_object()["/FontDescriptor"]
        embedded = {"/FontFile", "/FontFile2", "/FontFile3"} & descriptor.keys()
        assert embedded


def fonts_of(part) -> list:
    """The fonts of a page, or of a form that is drawn on one, and of forms in it."""
    resources = part["/Resources"].get_object()
    fonts = [font.get_object() for font in resources.get("/Font", {}).values()]
    for form in resources.get("/XObject", {}).values():
        form = form.get_object()
        if "/Resources" in form:
            fonts += fonts_of(form)
    return fonts


@every_picture
def test_the_png_is_three_times_as_large_as_the_svg(folder, name):
    content = (folder / f"{name}.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    (root,) = elements(svg_of(folder, name), "svg")[:1]
    assert width == pytest.approx(3 * number(root, "width"), abs=3)
    assert height == pytest.approx(3 * number(root, "height"), abs=3)


def test_a_picture_that_is_written_again_is_the_same_file(folder, tmp_path):
    for path in write_pictures(tmp_path, ["race", "accept-bars"]):
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name
