"""Accept bars and coins: what is seen, what a drag, a key or a button does."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from helpers.svg import elements

import speclib
from speclib import SpeclibError
from speclib.views.text import text_width

P, Q = (0.5, 0.2, 0.3), (0.2, 0.6, 0.2)
WORDS = ("a", "b", "c")
MARGIN = 16  # pixels between the edge of a picture and what stands on it


def bars():
    return speclib.accept_bars(P, Q, WORDS).bars


def throws(seed=0):
    return speclib.coins(P, Q, WORDS, seed).coins


def happen(picture, **what):
    """As if the page had sent it."""
    picture.happened = {**what, "count": picture.happened.get("count", 0) + 1}


def handles(picture) -> dict:
    """The parts that can be taken hold of, by their names."""
    groups = elements(picture.svg, "g")
    return {g.get("data-handle"): g for g in groups if g.get("data-handle")}


def heights(picture, kind: str) -> list[float]:
    """Of all boxes of a kind, in pixels."""
    boxes = elements(picture.svg, "rect", kind)
    return [float(box.get("height")) for box in boxes]


# -- accept bars -----------------------------------------------------------------------
def test_kept_and_replaced_parts_fill_p_for_every_token():
    shown = bars()
    for y in (60, 100, 200):
        happen(shown, kind="drag", handle="q-1", x=0, y=y)
        kept = heights(shown, "kept")[len(WORDS) :]  # the bars on the left come first
        replaced = heights(shown, "missing")
        assert len(kept) == len(replaced) == len(WORDS)
        written = [sum(parts) for parts in zip(kept, replaced, strict=True)]
        assert written == pytest.approx(heights(shown, "p"), abs=0.02)
        assert sum(written) == pytest.approx(236, abs=0.1)  # all of the column


@pytest.mark.parametrize("room", [480, 560, 800, 1100])
def test_what_stands_below_one_bar_does_not_run_into_the_next(room):
    shown = bars()
    shown.room = room
    texts = elements(shown.svg, "text")
    below = [
        text for text in texts if re.search(r"% (accepted|kept)$", text.text or "")
    ]
    assert len(below) == len(WORDS)
    for left, right in itertools.pairwise(below):
        gap = float(right.get("x")) - float(left.get("x"))
        assert (text_width(left.text) + text_width(right.text)) / 2 <= gap


def test_the_sentence_counts_what_both_distributions_share():
    """min(p, q) sums to 0.2 + 0.2 + 0.2."""
    assert bars().spoken == (
        "Of 100 drafted tokens 60 are kept and 40 are rejected and replaced."
    )
    assert "b: q 0.60, p 0.20, accepted with chance 0.33" in bars().text()


def test_the_top_of_a_bar_can_be_dragged_and_the_others_share_the_rest():
    shown = bars()
    top = float(handles(shown)["q-1"].find("{*}line").get("y1"))
    happen(shown, kind="drag", handle="q-1", x=0, y=top)
    assert shown.q[1] == pytest.approx(0.6, abs=0.01)  # it was not moved

    ground = max(float(e.get("y1", 0)) for e in elements(shown.svg, "line"))
    happen(shown, kind="drag", handle="q-1", x=0, y=(top + ground) / 2)
    assert shown.q[1] == pytest.approx(0.3, abs=0.01)
    assert shown.q.sum() == pytest.approx(1)
    assert shown.q[0] == pytest.approx(shown.q[2])  # as before: 0.2 to 0.2
    assert list(shown.p) == pytest.approx(P)


@pytest.mark.parametrize("y", [-1000, 5000])
def test_a_bar_can_be_dragged_neither_to_0_nor_to_1(y):
    shown = bars()
    happen(shown, kind="drag", handle="p-0", x=0, y=y)
    assert 0 < shown.p.min() and shown.p.max() < 1
    assert shown.p.sum() == pytest.approx(1)


def test_arrow_keys_move_the_bar_that_has_the_focus():
    shown = bars()
    happen(shown, kind="key", handle="p-2", key="ArrowUp")
    assert shown.p[2] == pytest.approx(0.31)
    happen(shown, kind="key", handle="p-2", key="ArrowLeft")
    assert shown.p[2] == pytest.approx(0.30)
    happen(shown, kind="key", handle="", key="ArrowUp")
    assert shown.p[2] == pytest.approx(0.30)


def test_the_temperature_shapes_both_distributions():
    """At 0.5 all probabilities are squared, and normalised."""
    view = speclib.accept_bars(P, Q, WORDS)
    view.temperature.value = 0.5
    squared = np.square(Q) / np.square(Q).sum()
    assert list(view.bars.q) == pytest.approx(list(squared))
    happen(view.bars, kind="key", handle="q-0", key="ArrowUp")
    assert view.bars.q[0] == pytest.approx(squared[0] + 0.01)


def test_a_handle_says_whose_probability_it_is():
    values = {
        g.get("aria-label"): g.get("aria-valuenow") for g in handles(bars()).values()
    }
    assert len(values) == 6
    assert values["probability of b in the draft model"] == "0.6"
    assert values["probability of a in the target model"] == "0.5"


# -- coins -----------------------------------------------------------------------------
def test_many_throws_write_tokens_as_the_target_would():
    """10,000 tokens: each share is within 4.5 standard errors of p."""
    shown = throws()
    shown.throw(10_000)
    shares = shown.counts / shown.counts.sum()
    for share, p in zip(shares, P, strict=True):
        assert abs(share - p) < 4.5 * (p * (1 - p) / 10_000) ** 0.5
    assert f"{max(abs(shares - np.array(P))):.3f}" in shown.spoken


def test_space_throws_once_and_r_begins_anew_with_other_coins():
    shown = throws()
    for _ in range(3):
        happen(shown, kind="key", handle="", key=" ")
    assert shown.counts.sum() == 3
    first = shown.last
    happen(shown, kind="key", handle="", key="r")
    assert shown.counts.sum() == 0 and shown.last is None
    shown.throw(3)
    assert shown.last != first


def test_the_dart_stands_where_the_coin_fell():
    shown = throws()
    strip = 900 - 2 * MARGIN
    for _ in range(20):
        shown.throw(1)
        darts = elements(shown.svg, "polygon", "dart")
        tips = [re.split("[ ,]", dart.get("points"))[-2] for dart in darts]
        coins = [c for c in (shown.last.coin, shown.last.second_coin) if c is not None]
        wanted = [MARGIN + coin * strip for coin in coins]
        assert [float(tip) for tip in tips] == pytest.approx(wanted, abs=0.01)


def test_a_coin_beyond_the_cut_is_a_rejection_and_asks_for_a_second_one():
    shown = throws()
    seen = set()
    for _ in range(100):
        shown.throw(1)
        last = shown.last
        chance = min(1, P[last.drafted] / Q[last.drafted])
        assert last.is_accepted == (last.coin < chance)
        assert last.is_accepted == (last.second_coin is None)
        word = "accepted" if last.is_accepted else "rejected"
        assert f"was {word}" in shown.spoken
        seen.add(word)
    assert seen == {"accepted", "rejected"}


# -- both ------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [bars, throws])
@pytest.mark.parametrize("room", [300, 480, 700, 1400])
def test_a_picture_is_drawn_for_the_room_that_the_page_has(make, room):
    shown = make()
    shown.room = room
    root = ET.fromstring(shown.svg)
    assert float(root.get("width")) == min(max(room, 480), 1100)
    sizes = [float(element.get("font-size", 14)) for element in root.iter()]
    assert min(sizes) >= 14


@pytest.mark.parametrize("show", [speclib.accept_bars, speclib.coins])
def test_a_notebook_gets_a_still_picture_and_words_too(show):
    data, _ = show()._repr_mimebundle_()
    assert {"text/plain", "image/png"} < data.keys()


@pytest.mark.parametrize("show", [speclib.accept_bars, speclib.coins])
@pytest.mark.parametrize(
    "p, said",
    [
        ((0.5, 0.5), "p has 2 probabilities for 4 tokens"),
        ((0.5, 0.5, 0.5, 0.5), "sum to 1"),
        ((1.0, 0.0, 0.0, 0.0), "above 0"),
    ],
)
def test_what_is_no_distribution_is_named(show, p, said):
    with pytest.raises(SpeclibError, match=said):
        show(p=p)
