"""Pictures for the board: valid files with the words that a class should see."""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path

import pytest
from helpers.svg import elements, number, texts

from speclab.teach.board_pictures import PICTURES, write_pictures

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
ENDINGS = (".svg", ".png")
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
