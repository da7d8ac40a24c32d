"""Pictures for lectures are valid files with the words that a class should see."""

from __future__ import annotations

import struct
from itertools import product

import pytest
from helpers.svg import elements, number, texts

from speclab.teach import board_pictures
from speclab.teach.board_pictures import PICTURES, write_pictures
from speclab.views.live.kv_ribbon import KvRibbonPicture
from speclib import simulate
from speclib.drawing.timeline.run import timeline_run

pytestmark = pytest.mark.slow
# The words of each picture, including the kind of its numbers if it has any.
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
    "sequences": ("the sequences", "the draft model's probability", "θ"),
    "tree": ("a tree of", "levels"),
    "layers": ("exact: one layer after the other", "fuzzy: N = 4", "(formula)"),
    "speed-against-c": ("PEARL, γ = c", "speculative, best γ", "[formula]"),
    "speed-against-acceptance": ("PEARL, γ = c", "DSI, 3 servers", "α", "[formula]"),
}


def test_every_picture_is_written_as_svg_and_png_with_its_words(tmp_path):
    names = {name + ending for name, ending in product(PICTURES, (".svg", ".png"))}
    assert {path.name for path in write_pictures(tmp_path)} == names
    for name, words in WORDS.items():
        svg = (tmp_path / f"{name}.svg").read_text("utf-8")
        shown = " ".join(texts(svg))
        for each in words:
            assert each in shown

        content = (tmp_path / f"{name}.png").read_bytes()
        width, height = struct.unpack(">II", content[16:24])
        (root,) = elements(svg, "svg")[:1]
        assert width == pytest.approx(3 * number(root, "width"), abs=3)
        assert height == pytest.approx(3 * number(root, "height"), abs=3)
    assert WORDS.keys() == PICTURES.keys()


def test_the_caches_are_shown_at_a_step_where_both_are_stale():
    run = timeline_run(simulate("pearl", **board_pictures.WHAT_IF))
    moment = KvRibbonPicture(run).moments[board_pictures.BOTH_CACHES_STALE - 1]
    assert all("stale" in kinds for kinds in moment.kinds.values())
