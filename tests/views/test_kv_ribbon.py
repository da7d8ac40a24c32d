"""The ribbons of KV caches: a box for every position, the keys and the slider."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from helpers.svg import elements

from speclab import kv_ribbon
from speclab.traces.caches import cache_moments
from speclib import SpeclibError, simulate
from speclib.trace.events import COMMIT


@pytest.fixture
def run():
    return simulate("speculative", gamma=4, alpha=0.5, tokens=20)


def press(picture, key: str) -> None:
    """As if the page had sent a key."""
    count = picture.happened.get("count", 0) + 1
    action = {"kind": "key", "handle": "", "key": key, "times": 1}
    picture.happened = {"count": count, "actions": [action]}


def boxes(picture, kind: str) -> list:
    """The boxes of a kind, except for the one in the legend, which comes last."""
    return elements(picture.svg, "rect", kind)[:-1]


def test_there_is_a_box_for_every_place_of_every_cache(run):
    ribbon = kv_ribbon(run)
    picture = ribbon.live
    prompt = run.trace.prompt_length
    for step, moment in enumerate(cache_moments(run.trace)[:9], 1):
        ribbon.slider.value = step
        hidden = max(0, prompt - 2)  # positions of the prompt, left of the first column
        for kind in ("exact", "stale"):
            places = 0
            for kinds in moment.kinds.values():
                places += kinds[hidden:].count(kind)
            assert len(boxes(picture, kind)) == places, (step, kind)


def test_a_rejection_is_seen_as_stale_places_and_then_as_a_cut(run):
    picture = kv_ribbon(run).live
    steps = cache_moments(run.trace)
    rejecting = next(
        step
        for step, moment in enumerate(steps, 1)
        if moment.event.op == COMMIT and "stale" in moment.kinds["draft"]
    )
    assert picture.step == rejecting  # it begins at the first interesting step
    assert boxes(picture, "stale")
    assert not boxes(picture, "cut")
    assert picture.spoken.startswith("The text grows by")
    assert "Stale: " in picture.spoken

    count = steps[rejecting - 1].kinds["draft"].count("stale")
    picture.step = rejecting + 1  # the draft model continues
    assert f"draft: cuts off {count} slot" in picture.spoken
    assert elements(picture.svg, "rect", "scissors")


def test_keys_step_and_space_plays(run):
    ribbon = kv_ribbon(run)
    picture, last = ribbon.live, len(ribbon.live.moments)
    press(picture, "Home")
    press(picture, "ArrowRight")
    press(picture, "ArrowRight")
    press(picture, "ArrowLeft")
    assert (picture.step, ribbon.slider.value, ribbon.player.value) == (2, 2, 2)

    press(picture, "End")
    press(picture, "ArrowRight")
    assert picture.step == ribbon.slider.value == last

    press(picture, "Home")
    press(picture, "ArrowLeft")
    assert picture.step == 1

    press(picture, " ")
    assert ribbon.player.playing
    press(picture, " ")
    assert not ribbon.player.playing


def test_the_newest_places_are_always_to_be_seen(run):
    picture = kv_ribbon(run).live
    for width in (480, 700, 1100):
        picture.page_width = width
        for step in range(1, len(picture.moments) + 1):
            picture.step = step
            for kind in ("exact", "stale", "cut"):
                for box in boxes(picture, kind):
                    assert float(box.get("x")) + float(box.get("width")) <= width

            places = picture.moment.kinds.values()
            longest = max(len(kinds) for kinds in places)
            tips = [title.text for title in elements(picture.svg, "title")]
            if longest > run.trace.prompt_length:
                assert any(tip.startswith(f"position {longest}:") for tip in tips)


def test_the_picture_is_valid_and_its_words_count_places(run):
    ribbon = kv_ribbon(run)
    ET.fromstring(ribbon.picture())
    assert repr(ribbon).startswith("KV caches, step ")
    forms, _ = ribbon._repr_mimebundle_()
    assert {"image/png", "text/plain"} < set(forms)


def test_what_has_no_line_of_drafts_is_refused():
    tree = simulate("tree", gamma=3, width=3, tokens=12, doubt=1.0)
    with pytest.raises(SpeclibError, match="width=1"):
        kv_ribbon(tree)
    with pytest.raises(SpeclibError, match="neither"):
        kv_ribbon("a run")
