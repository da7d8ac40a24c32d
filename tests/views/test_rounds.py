"""One round at a time: the drawing and the words agree with the trace."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from helpers.svg import elements, rectangles, texts

from speclab import rounds
from speclab.traces.rounds import window_rounds
from speclib import SpeclibError, simulate
from speclib.drawing.text_in_pictures import token_label

TOKENS = 40


@pytest.fixture
def run():
    return simulate("pearl", gamma=5, c=5.0, alpha=0.8, tokens=TOKENS)


def is_drafting(shown) -> bool:
    """Whether the text continues after the window, so that the round has new drafts."""
    return len(shown.before) + len(shown.window) < TOKENS


def shown_at(view, step: int):
    """The picture at a step."""
    view.slider.value = step
    return view.live


OUTCOMES = ("accepted", "rejected", "discarded", "waiting")


def drafts_of(svg: str) -> list:
    """The boxes of the drafts, which are the top row."""
    return [box for box in rectangles(svg, *OUTCOMES) if box.y == 110]


def cells(picture, kind: str) -> int:
    """The number of drafts with an outcome."""
    return [draft.kind for draft in drafts_of(picture.svg)].count(kind)


# -- the rounds of a trace -------------------------------------------------------------
def test_windows_are_replayed_from_the_trace_as_pearls_page_has_them(run):
    """A round leaves gamma - 1 drafts if all pass, and none after a rejection."""
    text = ()
    window = ()
    for shown in window_rounds(run.trace):
        assert shown.before == text
        assert shown.window == window
        assert shown.rows == len(window) + 1
        # The first new draft is tested early, as long as a round has new drafts.
        assert shown.early == (len(window) if is_drafting(shown) else None)
        tested = shown.outcomes[: shown.rows]
        accepted = tested.count("accepted")
        assert shown.committed[:accepted] == shown.drafts[:accepted]
        assert (shown.own is None) == (len(shown.committed) == accepted)
        window = () if shown.own is not None else shown.drafted[1:]
        text += shown.committed
    assert text == run.tokens


def test_outcomes_of_all_rounds_are_those_of_the_events(run):
    """Each accepted and each rejected draft is tested in exactly one round."""
    counted = {"accepted": 0, "rejected": 0}
    for shown in window_rounds(run.trace):
        for outcome in counted:
            counted[outcome] += shown.outcomes.count(outcome)
    stats = run.stats
    assert counted == {"accepted": stats.accepted, "rejected": stats.rejected}


@pytest.mark.parametrize("without", ["pre-verify", "post-verify"])
def test_the_ablations_of_pearl_have_rounds_without_an_early_test(without):
    run = simulate("pearl", gamma=4, c=4.0, alpha=0.8, tokens=32, without=without)
    early = [shown.early is not None for shown in window_rounds(run.trace)]
    windows = [bool(shown.window) for shown in window_rounds(run.trace)]
    if without == "pre-verify":
        assert not any(early)
    else:
        assert early == [not has_window for has_window in windows]


def test_in_speculative_decoding_nothing_is_left_for_the_next_round():
    run = simulate("speculative", gamma=3, alpha=0.8, tokens=30)
    for shown in window_rounds(run.trace):
        assert not shown.window
        assert shown.early is None
        assert shown.rows == len(shown.drafted) + 1


@pytest.mark.parametrize("method", ["dsi", "tree", "easyspec"])
def test_a_run_with_several_passes_or_trees_is_refused(method):
    with pytest.raises(SpeclibError, match="windows are shown only for runs of pearl"):
        rounds(simulate(method, alpha=0.8, doubt=0.5, tokens=24))


# -- the picture -----------------------------------------------------------------------
def test_every_draft_has_a_cell_and_every_row_stands_below_the_one_it_tests(run):
    view = rounds(run)
    for step, wanted in enumerate(window_rounds(run.trace), 1):
        picture = shown_at(view, step)
        for outcome in OUTCOMES:
            assert cells(picture, outcome) == wanted.outcomes.count(outcome)
        drafts = drafts_of(picture.svg)
        rows = rectangles(picture.svg, "score", "unused")
        rows = [box for box in rows if box.y == 172]
        assert len(rows) == wanted.rows
        for row, draft in zip(rows, drafts, strict=False):
            assert (row.x, row.width) == (draft.x, draft.width)


def test_the_rings_are_around_the_window_and_around_the_first_new_draft(run):
    view = rounds(run)
    for step, wanted in enumerate(window_rounds(run.trace), 1):
        svg = shown_at(view, step).svg
        drafts = drafts_of(svg)
        ringed = rectangles(svg, "ring-window")
        assert len(ringed) == bool(wanted.window)
        for ring in ringed:
            inside = [b for b in drafts if ring.x < b.x and b.right < ring.right]
            assert inside == drafts[: len(wanted.window)]
        ringed = rectangles(svg, "ring-early")
        assert len(ringed) == is_drafting(wanted)
        for ring in ringed:
            inside = [b for b in drafts if ring.x < b.x and b.right < ring.right]
            assert inside == [drafts[len(wanted.window)]]


def test_the_words_below_agree_with_the_picture(run):
    view = rounds(run)
    for step, wanted in enumerate(window_rounds(run.trace), 1):
        picture = shown_at(view, step)
        said = picture.spoken
        assert said in view.words.value.replace("&#x27;", "'")
        accepted = int(re.search(r"(\d+) drafts? accepted", said)[1])
        assert accepted == cells(picture, "accepted")
        assert ("rejected" in said) == bool(cells(picture, "rejected"))
        waiting = re.search(r"(\d+) left for the next window", said)
        assert int(waiting[1] if waiting else 0) == cells(picture, "waiting")
        discarded = re.search(r"(\d+) discarded", said)
        assert int(discarded[1] if discarded else 0) == cells(picture, "discarded")
        phase = "post-verify" if wanted.window else "pre-verify"
        assert (phase in said) == is_drafting(wanted)
        assert (phase in "".join(texts(picture.svg))) == is_drafting(wanted)
        written = [
            "".join(text.itertext())
            for text in elements(picture.svg, "text", "written-draft", "written-target")
        ]
        pieces = [token_label(run.pieces[token]) for token in wanted.committed]
        assert written == pieces


def test_it_begins_with_a_window_and_keys_step_to_both_ends(run):
    view = rounds(run)
    assert view.live.round.window
    press = {"kind": "key", "handle": "", "times": 99}
    for number, (key, step) in enumerate(
        [("Home", 1), ("ArrowRight", view.live.steps), ("ArrowLeft", 1)], 1
    ):
        view.live.happened = {"count": number, "actions": [{**press, "key": key}]}
        assert (view.live.step, view.slider.value) == (step, step)


@pytest.mark.parametrize("gamma", [1, 12])
@pytest.mark.parametrize("width", [300, 1400])
def test_nothing_stands_outside_of_the_picture(gamma, width):
    view = rounds(simulate("pearl", gamma=gamma, c=5.0, alpha=0.9, tokens=48))
    view.live.page_width = width
    root = ET.fromstring(view.live.svg)
    wide = float(root.get("width"))
    kinds = (*OUTCOMES, "score", "unused", "idle", "ring-window", "ring-early")
    for box in rectangles(view.live.svg, *kinds):
        assert box.x >= 0
        assert box.right <= wide
    sizes = [float(element.get("font-size", 14)) for element in root.iter()]
    assert min(sizes) >= 14
