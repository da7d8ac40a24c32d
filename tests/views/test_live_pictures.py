"""Accept bars and coins: what they show, and what a drag, a key or a button does."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from helpers.svg import elements

import speclab
from speclib import SpeclibError
from speclib.drawing.text_in_pictures import text_width

P, Q = (0.5, 0.2, 0.3), (0.2, 0.6, 0.2)
WORDS = ("a", "b", "c")
MARGIN = 16  # pixels between the edge of a picture and its content


def bars():
    return speclab.accept_bars(P, Q, WORDS).bars


def throws(seed=0):
    return speclab.coins(P, Q, WORDS, seed).coins


def happen(picture, **what):
    """As if the page had sent it."""
    count = picture.happened.get("count", 0) + 1
    picture.happened = {"count": count, "actions": [{"times": 1, **what}]}
    assert picture.answered == count


def handles(picture) -> dict:
    """The parts that can be dragged, by name."""
    parts = {}
    for group in elements(picture.svg, "g"):
        name = group.get("data-handle")
        if name:
            parts[name] = group
    return parts


def heights(picture, kind: str) -> list[float]:
    """The boxes of a kind, in pixels."""
    boxes = elements(picture.svg, "rect", kind)
    return [float(box.get("height")) for box in boxes]


# -- accept bars -----------------------------------------------------------------------
def test_kept_and_replaced_parts_fill_p_for_every_token():
    picture = bars()
    for y in (60, 100, 200):
        happen(picture, kind="drag", handle="q-1", x=0, y=y)
        kept = heights(picture, "kept")[len(WORDS) :]  # the bars on the left come first
        replaced = heights(picture, "missing")
        assert len(kept) == len(replaced) == len(WORDS)
        written = [sum(parts) for parts in zip(kept, replaced, strict=True)]
        assert written == pytest.approx(heights(picture, "p"), abs=0.02)
        assert sum(written) == pytest.approx(236, abs=0.1)  # all of the column


@pytest.mark.parametrize("width", [480, 1100])
def test_what_stands_below_one_bar_does_not_run_into_the_next(width):
    picture = bars()
    picture.page_width = width
    texts = elements(picture.svg, "text")
    below = []
    for text in texts:
        if re.search(r"% (accepted|kept)$", text.text or ""):
            below.append(text)
    assert len(below) == len(WORDS)
    for left, right in itertools.pairwise(below):
        distance = float(right.get("x")) - float(left.get("x"))
        mean_width = (text_width(left.text) + text_width(right.text)) / 2
        assert mean_width <= distance


def test_the_sentence_counts_what_both_distributions_share():
    """min(p, q) sums to 0.2 + 0.2 + 0.2."""
    assert bars().spoken == (
        "Of 100 drafted tokens, 60 are kept and 40 are rejected and replaced."
    )
    assert "b: q 0.60, p 0.20, accepted with probability 0.33" in bars().text()


def test_the_top_of_a_bar_can_be_dragged_and_the_others_share_the_rest():
    picture = bars()
    top = float(handles(picture)["q-1"].find("{*}line").get("y1"))
    happen(picture, kind="drag", handle="q-1", x=0, y=top)
    assert picture.q[1] == pytest.approx(0.6, abs=0.01)  # it was not moved

    lines = elements(picture.svg, "line")
    ground = max(float(line.get("y1", 0)) for line in lines)
    happen(picture, kind="drag", handle="q-1", x=0, y=(top + ground) / 2)
    assert picture.q[1] == pytest.approx(0.3, abs=0.01)
    assert picture.q.sum() == pytest.approx(1)
    assert picture.q[0] == pytest.approx(picture.q[2])  # as before: 0.2 to 0.2
    assert list(picture.p) == pytest.approx(P)


@pytest.mark.parametrize("y", [-1000, 5000])
def test_a_bar_can_be_dragged_neither_to_0_nor_to_1(y):
    picture = bars()
    happen(picture, kind="drag", handle="p-0", x=0, y=y)
    assert picture.p.min() > 0
    assert picture.p.max() < 1
    assert picture.p.sum() == pytest.approx(1)


def test_arrow_keys_move_the_bar_that_has_the_focus():
    picture = bars()
    happen(picture, kind="key", handle="p-2", key="ArrowUp")
    assert picture.p[2] == pytest.approx(0.31)
    happen(picture, kind="key", handle="p-2", key="ArrowLeft")
    assert picture.p[2] == pytest.approx(0.30)
    happen(picture, kind="key", handle="", key="ArrowUp")
    assert picture.p[2] == pytest.approx(0.30)


def test_a_key_that_was_pressed_often_moves_a_bar_so_many_steps():
    """The page counts while Python draws, so no press is lost."""
    picture = bars()
    up = {"kind": "key", "handle": "p-2", "key": "ArrowUp", "times": 12}
    down = {"kind": "key", "handle": "p-2", "key": "ArrowDown", "times": 5}
    picture.happened = {"count": 1, "actions": [up, down]}
    assert picture.p[2] == pytest.approx(0.37)
    assert picture.answered == 1


def test_a_picture_that_fails_still_answers():
    """Otherwise the page would wait forever before it sends the next action."""
    picture = bars()
    with pytest.raises(ValueError, match="unpack"):
        happen(picture, kind="drag", handle="nothing", x=0, y=0)
    assert picture.answered == 1


def test_the_temperature_shapes_both_distributions():
    """At 0.5 all probabilities are squared, and normalised."""
    view = speclab.accept_bars(P, Q, WORDS)
    view.temperature.value = 0.5
    squared = np.square(Q) / np.square(Q).sum()
    assert list(view.bars.q) == pytest.approx(list(squared))
    happen(view.bars, kind="key", handle="q-0", key="ArrowUp")
    assert view.bars.q[0] == pytest.approx(squared[0] + 0.01)


# -- coins -----------------------------------------------------------------------------
def test_many_throws_write_tokens_as_the_target_would():
    """10,000 tokens: each share is within 4.5 standard errors of p."""
    picture = throws()
    picture.throw(10_000)
    shares = picture.counts / picture.counts.sum()
    for share, p in zip(shares, P, strict=True):
        assert abs(share - p) < 4.5 * (p * (1 - p) / 10_000) ** 0.5
    assert f"{max(abs(shares - np.array(P))):.3f}" in picture.spoken


def test_space_throws_once_and_r_begins_anew_with_other_coins():
    picture = throws()
    for _ in range(3):
        happen(picture, kind="key", handle="", key=" ")
    assert picture.counts.sum() == 3
    first = picture.last

    happen(picture, kind="key", handle="", key="r")
    assert picture.counts.sum() == 0
    assert picture.last is None
    picture.throw(3)
    assert picture.last != first


def test_the_dart_stands_where_the_coin_fell():
    picture = throws()
    strip = 900 - 2 * MARGIN
    for _ in range(20):
        picture.throw(1)
        tips = []
        for dart in elements(picture.svg, "polygon", "dart"):
            *_, tip_x, _tip_y = re.split("[ ,]", dart.get("points"))
            tips.append(float(tip_x))

        coins = [picture.last.coin]
        if picture.last.second_coin is not None:
            coins.append(picture.last.second_coin)
        assert tips == pytest.approx(
            [MARGIN + coin * strip for coin in coins], abs=0.01
        )


def test_a_coin_beyond_the_cut_is_a_rejection_and_asks_for_a_second_one():
    picture = throws()
    seen = set()
    for _ in range(100):
        picture.throw(1)
        last = picture.last
        chance = min(1, P[last.drafted] / Q[last.drafted])
        assert last.is_accepted == (last.coin < chance)
        assert last.is_accepted == (last.second_coin is None)
        word = "accepted" if last.is_accepted else "rejected"
        assert f"was {word}" in picture.spoken
        seen.add(word)
    assert seen == {"accepted", "rejected"}


# -- both ------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [bars, throws])
@pytest.mark.parametrize("width", [300, 1400])
def test_a_picture_is_drawn_for_the_width_that_the_page_has(make, width):
    picture = make()
    picture.page_width = width
    root = ET.fromstring(picture.svg)
    assert float(root.get("width")) == min(max(width, 480), 1100)
    sizes = [float(element.get("font-size", 14)) for element in root.iter()]
    assert min(sizes) >= 14


@pytest.mark.parametrize("show", [speclab.accept_bars, speclab.coins])
def test_a_notebook_gets_a_still_picture_and_words_too(show):
    data, _ = show()._repr_mimebundle_()
    assert {"text/plain", "image/png"} < data.keys()


@pytest.mark.parametrize("show", [speclab.accept_bars, speclab.coins])
@pytest.mark.parametrize(
    "p, message",
    [
        ((0.5, 0.5), "p has 2 probabilities for 4 tokens"),
        ((1.0, 0.0, 0.0, 0.0), "above 0"),
    ],
)
def test_what_is_no_distribution_is_named(show, p, message):
    with pytest.raises(SpeclibError, match=message):
        show(p=p)
