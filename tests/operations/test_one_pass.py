"""Draft models that write a whole window in one pass, with masks."""

from __future__ import annotations

import numpy as np
import pytest

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.replay import replay
from speclib.errors import BadValue
from speclib.methods import METHODS
from speclib.models.toy import Random
from speclib.operations.operation import DecodingRun, Pass, perform
from speclib.operations.propose import Propose
from speclib.worlds import enumerator
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

MASK = 0
SAMPLED = Sampler(1.0)
PAIR = "embedded/llama-7b-70b"
LINES = ("speculative", "pearl", "ssd")  # methods that draft sequences and accept test=


# -- operations ------------------------------------------------------------------------
def test_each_token_is_drawn_from_the_row_before_its_mask():
    model, sampler, coins = Random(5, seed=3), Sampler(1.0), Coins(7)
    operation = Propose((1, 2, 3), 3, mask=MASK)
    request = DecodingRun(number=1, coins=coins, sampler=sampler)
    done = perform(operation, model, request)

    texts = [(1, 2, 3), (1, 2, 3, MASK), (1, 2, 3, MASK, MASK)]
    rows = [Random(5, seed=3).rows(text, 0, sampler)[0] for text in texts]
    np.testing.assert_array_equal(done.output.rows, rows)
    expected = []
    for level, row in enumerate(rows):
        expected.append(coins.choose(row, 3 + level, "draft", 0))
    assert done.output.small == tuple(expected)
    assert (done.kept, done.fed) == (0, 5)
    assert operation.passes(done.kept, done.fed) == [Pass(fed=5, kept=0)]


def test_masks_are_not_cached():
    model = Random(5, seed=3)
    request = DecodingRun(number=1, coins=Coins(), sampler=Sampler())
    perform(Propose((1, 2, 3), 3, mask=MASK), model, request)
    done = perform(Propose((1, 2, 3, 4, 2), 3, mask=MASK), model, request)
    assert (done.kept, done.fed) == (3, 2 + 2)


def run_with_masks(method, sampler=SAMPLED, **settings):
    """Returns a virtual trace, at c = 3, of random models with five tokens."""
    models = {"draft": Random(5, 1), "target": Random(5, 2)}
    world = Virtual(models, Latency.ratio(3))
    world.mask = MASK
    world.begin((1, 2), sampler=sampler, coins=Coins(4), limit=40)
    METHODS[method](world, **settings)
    return world.end(method=method, prompt=[1, 2], **settings)


def test_an_unsure_draft_still_stops_early():
    how = dict(num_assistant_tokens=6, schedule="constant")
    counts = {}
    for threshold in (0.0, 0.9):
        trace = run_with_masks("assisted", confidence_threshold=threshold, **how)
        windows = [event for event in trace.operations if event.is_drafting]
        assert {event.pass_count for event in windows} == {1}
        counts[threshold] = sum(len(event.tokens) for event in windows) / len(windows)
    assert counts[0.9] < 2 < counts[0.0]


# -- costs -----------------------------------------------------------------------------
def test_a_window_takes_one_draft_pass():
    trace = run_with_masks("speculative", gamma=4)
    windows = [event for event in trace.operations if event.is_drafting]
    assert max(len(event.tokens) for event in windows) == 4
    assert {round(event.dur, 9) for event in windows} == {round(1 / 3, 9)}


def test_branches_of_any_length_take_two_passes():
    """One pass is over the window, and one is for all branches."""
    trace = run_with_masks("ssd", gamma=6, fan=2)
    forks = [event for event in trace.operations if event.op == "fork" and event.tokens]
    assert {event.pass_count for event in forks} == {2}
    assert {round(event.dur, 9) for event in forks} == {round(2 / 3, 9)}


@pytest.mark.parametrize("method", LINES)
def test_a_replay_gives_the_same_trace(method):
    trace = run_with_masks(method, gamma=4)
    assert replay(trace) == trace


# -- lossless --------------------------------------------------------------------------
@pytest.mark.parametrize("test", ["ratio", "block", "exact"])
@pytest.mark.parametrize("method", LINES)
def test_sampling_has_the_targets_distribution(method, test, monkeypatch):
    monkeypatch.setattr(World, "mask", MASK)
    toys = {"draft": Random(3, 1, horizon=4), "target": Random(3, 2, horizon=4)}
    found = enumerator.outcomes(METHODS[method], toys, 3, gamma=2, test=test)
    assert enumerator.distance(found, enumerator.truth(toys["target"], 3)) < 1e-12


@pytest.mark.parametrize("method", ["ssd", "dsi", "assisted"])
def test_masks_do_not_change_what_real_models_write(method):
    """This holds even if the draft was not trained with masks."""
    pytest.importorskip("torch")
    pair = speclib.load_pair(PAIR)
    masked = pair.model_copy(
        update={"draft": pair.draft.model_copy(update={"mask": MASK})}
    )
    how = dict(prompt="def gcd(a, b):", world="virtual", max_new_tokens=16)
    run = speclib.decode(pair=masked, method=method, **how)
    plain = speclib.decode(pair=pair, method="autoregressive", **how)
    assert run.tokens == plain.tokens


# -- bad input -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "role, changes, message",
    [
        ("target", {"mask": 0}, "only a draft"),
        ("draft", {"mask": -1}, "mask"),
        (
            "draft",
            {"mask": 0, "head": True, "shape": None},
            "one token at a time",
        ),
    ],
)
def test_a_mask_that_cannot_work_is_refused(role, changes, message):
    specs = {"target": {"model": "zoo/target"}, "draft": {"model": "zoo/target"}}
    specs[role] = specs[role] | changes
    with pytest.raises(BadValue, match=message):
        speclib.pair(**specs)


def test_a_mask_outside_the_drafts_vocabulary_is_refused_before_models_load():
    pytest.importorskip("torch")
    draft = {"model": "zoo/draft-once", "mask": 128256}
    pair = speclib.pair("zoo/target", draft, latency="pearl/llama2-7-70")
    for world in ("virtual", "processes"):
        with pytest.raises(BadValue, match="mask is 128256, but 'zoo/draft-once' has"):
            speclib.decode("def gcd(a, b):", pair=pair, world=world)


def test_a_trace_of_dsi_with_a_mask_replays_to_itself():
    """The trace has cancelled passes that wrote nothing."""
    pytest.importorskip("torch")
    pair = speclib.load_pair("embedded/once")
    how = dict(pair=pair, method="dsi", lookahead=2, world="virtual", max_new_tokens=24)
    trace = speclib.decode("def gcd(a, b):", **how).trace
    assert any(event.cancelled for event in trace.operations)
    assert replay(trace) == trace
