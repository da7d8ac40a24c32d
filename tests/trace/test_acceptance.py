"""Acceptance rates by position: counted, given, or read from engines' logs."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul

import pytest

import speclib
from speclab.traces.acceptance import (
    acceptance,
    acceptance_of_log,
    conditional,
)
from speclib.errors import BadValue
from speclib.methods import METHODS, about, takes_gamma
from speclib.models.toy import Toy

RATES = [0.9, 0.7, 0.5, 0.2]
VLLM = """\
INFO 09-01 SpecDecoding metrics: Mean acceptance length: 2.10, Accepted: 110 tokens, \
Per-position acceptance rate: 0.600, 0.300, 0.200, Avg Draft acceptance rate: 36.7%
INFO 09-01 SpecDecoding metrics: Mean acceptance length: 2.46, Accepted: 146 tokens, \
Per-position acceptance rate: 0.800, 0.480, 0.180, Avg Draft acceptance rate: 48.7%
"""
LLAMACPP = """\
slot 0 | draft acceptance rate = 0.00000 (    0 accepted /     0 generated)
slot 0 | draft acceptance rate = 0.50000 (    5 accepted /    10 generated)
slot 1 | draft acceptance rate = 0.70000 (   70 accepted /   100 generated)
"""


def test_rates_counted_by_hand():
    """Of four windows of two, two pass; then the first draft fails, then the second."""
    run = speclib.simulate("speculative", gamma=2, alpha=1.0, tokens=6)
    counts = acceptance(run.trace)
    assert (counts.windows, counts.drafted) == (2, 4)
    assert counts.tested == counts.accepted == (2, 2)
    wrong = speclib.simulate("speculative", gamma=2, alpha=0.0, tokens=3)
    assert acceptance(wrong.trace).tested == (3, 0)
    assert math.isnan(acceptance(wrong.trace).conditional[1])
    both = acceptance([run.trace, wrong.trace])
    assert both.tested == (5, 2)
    assert both.accepted == (2, 2)
    assert both.settled == (5, 4)  # the last failing window has room for one draft
    assert both.by_position == (2 / 5, 2 / 4)
    assert both.written == 6 + 3
    assert both.mean_length == 9 / 5
    assert both.rate == 4 / 9


@pytest.mark.parametrize("backup", ["draft", "none"])
def test_only_the_followed_branch_of_ssd_counts(backup):
    how = dict(gamma=3, fan=2, backup=backup, alpha=0.7, doubt=0.8, tokens=100)
    run = speclib.simulate("ssd", **how)
    counts = acceptance(run)
    assert sum(counts.accepted) == run.stats.accepted
    assert sum(counts.tested) - sum(counts.accepted) == run.stats.rejected
    assert counts.windows < run.stats.rounds


@pytest.mark.parametrize("method", ["speculative", "pearl"])
def test_a_run_has_the_given_rates(method):
    runs = [
        speclib.simulate(method, gamma=4, alpha=RATES, tokens=400, seed=seed).trace
        for seed in range(10)
    ]
    counts = acceptance(runs)
    if method == "speculative":
        for found, given, tested in zip(
            counts.conditional, RATES, counts.tested, strict=True
        ):
            error = math.sqrt(given * (1 - given) / tested)
            assert abs(found - given) < 4 * error
        by_hand = 1 + sum(accumulate(RATES, mul))
        assert counts.mean_length == pytest.approx(by_hand, rel=0.03)
    else:  # a block after an accepted one begins with a later rate
        assert counts.conditional[0] < 0.9


@pytest.mark.parametrize("method", ["speculative", "pearl", "ssd", "dsi", "tree"])
def test_every_method_is_lossless_with_rates_by_position(method):
    plain = speclib.simulate("autoregressive", tokens=60)
    assert speclib.simulate(method, alpha=RATES, tokens=60).tokens == plain.tokens


def test_a_log_of_vllm_gives_conditional_rates_to_simulate():
    """Both intervals have 100 windows, with 110 = 100 * 1.1 and 146 accepted tokens."""
    (last,) = VLLM.splitlines()[1:]
    rates = acceptance_of_log(last)
    assert rates == pytest.approx((0.8, 0.6, 0.375))
    assert 1 + sum(accumulate(rates, mul)) == pytest.approx(2.46)
    both = acceptance_of_log(VLLM)
    assert both == pytest.approx((0.7, 0.39 / 0.7, 0.19 / 0.39))
    assert conditional((0.5, 0.0, 0.0)) == (0.5, 0.0, 0.0)
    run = speclib.simulate("pearl", gamma=3, alpha=rates)
    assert run.trace.meta["alpha"] == list(rates)


def test_intervals_of_vllm_are_weighted_by_their_drafts():
    """There are 100 intervals with 258 windows each, and a last one with one window."""
    line = (
        "SpecDecoding metrics: Mean acceptance length: 2.55, Accepted: {} tokens, "
        "Drafted: {} tokens, Per-position acceptance rate: {}, Avg Draft acceptance "
        "rate: 1%\n"
    )
    log = line.format(400, 774, "0.800, 0.500, 0.250") * 100
    log += line.format(0, 3, "0.000, 0.000, 0.000")
    share = 25_800 / 25_801
    expected = (0.8 * share, 0.5 / 0.8, 0.25 / 0.5)
    assert acceptance_of_log(log) == pytest.approx(expected)


@pytest.mark.parametrize(
    "log, says",
    [
        (
            "Drafted: 6 tokens, Per-position acceptance rate: 0.5, 0.2, Avg\n"
            "Drafted: 3 tokens, Per-position acceptance rate: 0.6, Avg\n",
            r"rates for \[1, 2\] positions",
        ),
        (
            "draft acceptance rate = 0.9 (90 accepted / 100 generated)\n"
            "statistics draft: #calls = 40, #gen drafts = 40, #acc drafts = 40, "
            "#gen tokens = 100, #acc tokens = 90\n",
            "2.5 drafts on average, not 8.*draft-p-min",
        ),
    ],
)
def test_a_log_without_a_rate_is_refused_with_the_reason(log, says):
    with pytest.raises(BadValue, match=says):
        acceptance_of_log(log, gamma=8 if "draft" in log else None)


# -- after the end of the text ---------------------------------------------------------
PERFECT = speclib.pair(
    {"model": "toy"}, {"model": "toy", "alpha": 1.0}, latency="pearl/codellama-7-70"
)


@pytest.mark.parametrize("tokens", [1, 4, 5, 6, 13])
@pytest.mark.parametrize("method", ["speculative", "pearl", "ssd"])
def test_a_perfect_draft_never_fails_at_any_length(method, tokens):
    how = dict(world="virtual", gamma=4, max_new_tokens=tokens)
    run = speclib.decode("x", pair=PERFECT, method=method, **how)
    if not run.stats.accepted:
        return  # the target wrote everything
    counts = acceptance(run)
    assert set(counts.by_position) == set(counts.conditional) == {1.0}
    assert counts.rate == run.stats.acceptance_rate == 1.0
    assert counts.written <= tokens


@pytest.mark.parametrize("end_at", [2, 4, 5, 11])
@pytest.mark.parametrize("method", ["speculative", "pearl", "ssd"])
def test_drafts_after_an_end_token_do_not_count(method, end_at, decode):
    """The draft continues with the target's own text, even after the end."""
    words = tuple(range(1, 20))
    models = {name: Toy(1.0, 20, 0, words, 64) for name in ("draft", "target")}
    output, trace = decode(METHODS[method], models, 19, gamma=4, eos=words[end_at])
    assert output == words[: end_at + 1]
    counts = acceptance(trace)
    assert set(counts.by_position) == {1.0}
    assert counts.rate == 1.0
    assert counts.written <= len(output)


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("gamma", [8, 300])
def test_nothing_is_drafted_beyond_the_end_of_the_text(method, gamma, decode):
    for settings in about(method).variants[:1]:
        what = dict(settings)
        if takes_gamma(method):
            what["gamma"] = gamma if method != "ssd" else min(gamma, 30)
        models = {"draft": Toy(0.8, 20), "target": Toy(None, 20)}
        _, trace = decode(METHODS[method], models, 8, **what)
        for event in trace.operations:
            if event.is_drafting:
                room = 8 if event.op != "fork" else 8 + what["gamma"]
                assert all(position <= room for position in event.positions)


def test_a_log_of_llamacpp_includes_untested_drafts():
    """In all its lines together, 75 of 110 drafts are accepted.

    With one draft per window, that is the rate. With more, the rate is higher, because
    drafts after a rejected one count too.
    """
    (alone,) = acceptance_of_log(LLAMACPP, gamma=1)
    assert alone == pytest.approx(75 / 110)
    (rate,) = acceptance_of_log(LLAMACPP, gamma=4)
    assert (rate + rate**2 + rate**3 + rate**4) / 4 == pytest.approx(75 / 110)
    with pytest.raises(BadValue, match="75 accepted of all 110.*give gamma"):
        acceptance_of_log(LLAMACPP)


def test_llamacpps_rate_gives_its_runs_alpha():
    what = dict(method="speculative", gamma=8, c=8, tokens=200)
    runs = [speclib.simulate(alpha=0.8, seed=seed, **what) for seed in range(8)]
    counts = acceptance(runs)
    log = (
        f"draft acceptance rate = {counts.rate:.5f} ({sum(counts.accepted)} accepted / "
        f"{counts.drafted} generated)"
    )
    assert acceptance_of_log(log, gamma=8)[0] == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    "wrong",
    [
        "Per-position acceptance rate: 0.500, 0.800",
        "draft acceptance rate = 1.5 (15 accepted / 10 generated)",
        "",
    ],
)
def test_an_impossible_log_is_refused(wrong):
    with pytest.raises(BadValue):
        acceptance_of_log(wrong, gamma=3)


def test_runs_without_a_line_of_drafts_are_refused():
    with pytest.raises(BadValue, match="no line of drafts"):
        acceptance(speclib.simulate("autoregressive").trace)


@pytest.mark.parametrize("wrong", [[], [0.5, 1.1]])
def test_a_vector_without_valid_rates_is_refused(wrong):
    with pytest.raises(BadValue, match="alpha is .*up to 1"):
        speclib.simulate(alpha=wrong)


def test_a_vector_and_doubt_exclude_each_other():
    with pytest.raises(BadValue, match="leave doubt out"):
        speclib.simulate(alpha=[0.9, 0.5], doubt=0.5)
