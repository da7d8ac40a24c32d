"""Drafts that write a whole window in one pass, behind masks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import speclib
from speclab.traces.acceptance import acceptance
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.replay import replay
from speclib.errors import BadValue
from speclib.methods import METHODS, about
from speclib.models.toy import Random
from speclib.operations.operation import Pass, Request, perform
from speclib.operations.propose import Propose
from speclib.trace.metrics import stats
from speclib.worlds import enumerator
from speclib.worlds.world import World

MASK = 0
PAIR = "embedded/llama-7b-70b"
LINES = ("speculative", "pearl", "ssd")  # methods that draft in a line, by test=


# -- what an operation does ------------------------------------------------------------
def test_each_token_is_drawn_from_the_row_before_its_mask():
    model, sampler, coins = Random(5, seed=3), Sampler(1.0), Coins(7)
    operation = Propose((1, 2, 3), 3, mask=MASK)
    request = Request(run=1, coins=coins, sampler=sampler)
    done = perform(operation, model, request)

    texts = [(1, 2, 3), (1, 2, 3, MASK), (1, 2, 3, MASK, MASK)]
    rows = [Random(5, seed=3).rows(text, 0, sampler)[0] for text in texts]
    np.testing.assert_array_equal(done.raw.rows, rows)
    expected = []
    for place, row in enumerate(rows):
        expected.append(coins.choose(row, 3 + place, "draft", 0))
    assert done.raw.small == tuple(expected)
    assert (done.kept, done.fed) == (0, 5)
    assert operation.passes(done.kept, done.fed) == [Pass(fed=5, kept=0)]


def test_masks_do_not_stay_in_the_cache():
    model = Random(5, seed=3)
    request = Request(run=1, coins=Coins(), sampler=Sampler())
    perform(Propose((1, 2, 3), 3, mask=MASK), model, request)
    done = perform(Propose((1, 2, 3, 4, 2), 3, mask=MASK), model, request)
    assert (done.kept, done.fed) == (3, 2 + 2)


def test_a_draft_that_is_unsure_ends_early_here_too():
    """Some windows have fewer tokens than the pass had rows for; sure ones have all."""
    how = dict(alpha=0.6, tokens=60, one_pass=True, num_assistant_tokens=6)
    cut = {"unsure": 0, "sure": 0}
    for name, doubt in (("unsure", 1.0), ("sure", 0.0)):
        run = speclib.simulate("assisted", doubt=doubt, **how)
        for event in run.trace.operations:
            if event.op == "propose" and event.payload.masks is not None:
                assert event.payload.masks < 6  # one pass, and not a second one
                cut[name] += len(event.tokens) < 1 + event.payload.masks
    assert cut["unsure"] > 0
    assert cut["sure"] == 0


# -- what it takes ---------------------------------------------------------------------
def test_a_window_takes_one_pass_of_the_draft():
    """Two rounds of five tokens: 0.2 s for four drafts, and a second for the target."""
    how = dict(gamma=4, latency=Latency.ratio(5), alpha=1.0, tokens=10)
    at_once = speclib.simulate("speculative", one_pass=True, **how)
    in_turn = speclib.simulate("speculative", **how)
    assert at_once.stats.seconds == pytest.approx(2 * 1.2)
    assert in_turn.stats.seconds == pytest.approx(2 * 1.8)
    assert at_once.stats.draft_runs == 2
    assert at_once.stats.drafted == in_turn.stats.drafted == 8


def test_branches_take_two_passes_however_long_they_are():
    """One over the window and one for all branches; the target waits for neither."""
    how = dict(gamma=6, latency=Latency.ratio(3), alpha=1.0, doubt=0.5, fan=2)
    run = speclib.simulate("ssd", one_pass=True, tokens=22, **how)
    forks = [e for e in run.trace.operations if e.op == "fork" and e.tokens]
    assert {event.pass_count for event in forks} == {2}
    assert {round(event.dur, 9) for event in forks} == {round(2 / 3, 9)}
    assert run.stats.seconds == pytest.approx(4.0)  # 1 token, and then 7 a round


@pytest.mark.parametrize("method", LINES)
def test_a_replay_takes_as_long(method):
    run = speclib.simulate(method, alpha=0.7, doubt=0.5, tokens=40, one_pass=True)
    again = replay(run.trace)
    assert stats(again) == run.stats


def test_acceptance_can_be_given_place_by_place():
    rates = [0.9, 0.6, 0.4]
    runs = []
    for seed in range(8):
        run = speclib.simulate(
            "speculative", gamma=3, alpha=rates, tokens=400, seed=seed, one_pass=True
        )
        runs.append(run)
    counts = acceptance(runs)
    for found, given, tested in zip(
        counts.conditional, rates, counts.tested, strict=True
    ):
        assert abs(found - given) < 4 * math.sqrt(given * (1 - given) / tested)


# -- lossless --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "method", [name for name in METHODS if about(name).uses_draft and name != "eagle"]
)
def test_every_method_writes_the_targets_text(method):
    plain = speclib.simulate("autoregressive", tokens=40)
    for settings in about(method).variants:
        how = dict(alpha=0.7, doubt=0.5, tokens=40, one_pass=True, **settings)
        assert speclib.simulate(method, **how).tokens == plain.tokens


@pytest.mark.parametrize("test", ["ratio", "block", "exact"])
@pytest.mark.parametrize("method", LINES)
def test_sampled_texts_are_as_likely_as_the_targets(method, test, monkeypatch):
    monkeypatch.setattr(World, "mask", MASK)
    toys = {"draft": Random(3, 1, horizon=4), "target": Random(3, 2, horizon=4)}
    found = enumerator.outcomes(METHODS[method], toys, 3, gamma=2, test=test)
    assert enumerator.distance(found, enumerator.truth(toys["target"], 3)) < 1e-12


@pytest.mark.parametrize("method", [*LINES, "dsi", "assisted", "tree", "duodecoding"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_real_models_write_as_they_do_without_a_mask_or_lose_nothing(
    method, temperature
):
    """Whatever the draft makes of masks that it never met, greedy output stays."""
    pytest.importorskip("torch")
    pair = speclib.load_pair(PAIR)
    masked = pair.model_copy(
        update={"draft": pair.draft.model_copy(update={"mask": MASK})}
    )
    how = dict(world="virtual", max_new_tokens=16, temperature=temperature)
    run = speclib.decode("def gcd(a, b):", pair=masked, method=method, **how)
    assert len(run.tokens) == 16 or run.tokens[-1] == 2
    if not temperature:
        plain = speclib.decode(
            "def gcd(a, b):", pair=pair, method="autoregressive", **how
        )
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
            "one token after the other",
        ),
    ],
)
def test_a_mask_where_none_can_be_is_refused(role, changes, message):
    specs = {"target": {"model": "zoo/target"}, "draft": {"model": "zoo/target"}}
    specs[role] = specs[role] | changes
    with pytest.raises(BadValue, match=message):
        speclib.pair(**specs)


def test_a_mask_beyond_the_drafts_vocabulary_is_named_before_anything_is_built():
    pytest.importorskip("torch")
    draft = {"model": "zoo/draft-once", "mask": 128256}
    pair = speclib.pair("zoo/target", draft, latency="pearl/llama2-7-70")
    for world in ("virtual", "processes"):
        with pytest.raises(BadValue, match="mask is 128256, but 'zoo/draft-once' kn"):
            speclib.decode("def gcd(a, b):", pair=pair, world=world)


def test_a_trace_of_dsi_with_a_mask_replays_to_itself():
    """In it passes are cancelled that have written nothing."""
    pytest.importorskip("torch")
    pair = speclib.load_pair("embedded/once")
    how = dict(pair=pair, method="dsi", lookahead=2, world="virtual", max_new_tokens=24)
    trace = speclib.decode("def gcd(a, b):", **how).trace
    assert any(event.cancelled for event in trace.operations)
    assert replay(trace) == trace
