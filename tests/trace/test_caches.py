"""What KV caches hold: counted by hand, and against what operations say they kept."""

from __future__ import annotations

import pytest

from speclib import SpeclibError, simulate
from speclib.trace.caches import cache_moments
from speclib.trace.events import COMMIT

LINES = {
    "autoregressive": {},
    "speculative": {"gamma": 4},
    "pearl": {"gamma": 4},
    "dsi": {"servers": 2},
    "duodecoding": {"gamma": 4, "k": 1},
    "easyspec": {"gamma": 4, "width": 1, "lp": 3},
}


@pytest.fixture(params=LINES, scope="module")
def trace(request):
    settings = LINES[request.param]
    return simulate(request.param, alpha=0.6, tokens=40, **settings).trace


def test_of_a_block_what_follows_the_first_rejected_draft_is_stale():
    """The target was fed all four drafts, the draft model all but the last one."""
    trace = simulate("speculative", gamma=4, alpha=0.6, tokens=40).trace
    blocks = [event for event in trace.operations if event.is_drafting]
    commits = [m for m in cache_moments(trace) if m.event.op == COMMIT]
    stale_counts = set()
    for block, moment in zip(blocks[:-1], commits[:-1], strict=True):
        accepted = block.outcome.count("accepted")
        stale = {device: kinds.count("stale") for device, kinds in moment.kinds.items()}
        assert stale == {"target": 4 - accepted, "draft": max(0, 3 - accepted)}
        stale_counts.add(stale["target"])
    assert {0, 4} < stale_counts


def test_a_cache_is_as_long_as_what_was_kept_and_fed(trace):
    for moment in cache_moments(trace):
        event = moment.event
        if event.op != COMMIT:
            assert len(moment.kinds[event.device]) == event.kept + event.fed
            assert moment.added == event.fed


def test_what_is_stale_is_cut_by_the_devices_next_operation(trace):
    """And nothing else, but for the last token of a text, whose row may be asked for
    again, and what fuzzy passes cached."""
    before: dict[str, tuple[str, ...]] = {}
    text_length = trace.prompt_length
    seen = 0
    for moment in cache_moments(trace):
        event = moment.event
        if event.op != COMMIT:
            own = before.get(event.device, ())
            began_with_this_text = trace.text_length_at(event.ts) == text_length
            if began_with_this_text:
                stale = own.count("stale")
                rest = [kind for kind in own[event.kept :] if kind == "exact"]
                assert set(own[: event.kept]) <= {"exact", "fuzzy"}
                assert len(rest) <= 1
                seen += stale > 0
        text_length = moment.text_length
        before = moment.kinds
    assert seen or trace.meta["method"] in ("autoregressive", "dsi")


def test_nothing_is_fuzzy_but_what_easyspec_drafts(trace):
    kinds = set()
    for moment in cache_moments(trace):
        for device, places in moment.kinds.items():
            kinds |= {(device, kind) for kind in places}
    is_easyspec = trace.meta["method"] == "easyspec"
    assert (("draft", "fuzzy") in kinds) == is_easyspec
    assert ("target", "fuzzy") not in kinds


@pytest.mark.parametrize("calibrate", [True, False])
def test_calibrated_the_fuzzy_places_of_a_block_are_gone_when_it_ends(calibrate):
    """A block of five levels has one exact pass and feeds four drafts in fuzzy ones.

    Not calibrated, all passes but the first of the run are fuzzy, and places stay.
    """
    settings = {"gamma": 5, "width": 1, "lp": 3, "calibrate": calibrate}
    trace = simulate("easyspec", alpha=1.0, tokens=30, **settings).trace
    drafting, after = [], []
    for moment in cache_moments(trace):
        fuzzy = moment.kinds["draft"].count("fuzzy")
        if moment.event.is_drafting:
            drafting.append(fuzzy)
        elif moment.event.op == COMMIT:
            after.append(fuzzy)
    if calibrate:
        assert set(drafting[:-1]) == {4}
        assert set(after) == {0}
    else:
        assert drafting[0] == 4
        assert drafting[1] == 4 + 6  # the last draft, the bonus, four of its own
        assert after[0] == 4


def test_a_tree_is_refused_with_what_to_do():
    tree = simulate("easyspec", gamma=4, width=3, tokens=20, doubt=1.0).trace
    with pytest.raises(SpeclibError, match="width=1"):
        cache_moments(tree)
    several = simulate("duodecoding", gamma=4, k=2, tokens=20).trace
    with pytest.raises(SpeclibError, match="k=1"):
        cache_moments(several)
