"""Acceptance place by place: counted, given, and read from engines' logs."""

from __future__ import annotations

import math

import pytest

import speclib
from speclib.errors import BadValue
from speclib.trace.acceptance import (
    acceptance,
    acceptance_of_log,
    conditional,
    expected_length,
)

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


def test_a_run_by_hand():
    """Four windows of two: both pass, both pass, the first fails, the second fails."""
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
    assert both.by_position == (2 / 5, 2 / 5)
    assert both.mean_length == 1 + 4 / 5
    assert both.rate == 4 / 10


@pytest.mark.parametrize("backup", ["draft", "none"])
def test_of_ssds_branches_the_one_that_was_followed_counts(backup):
    how = dict(gamma=3, fan=2, backup=backup, alpha=0.7, doubt=0.8, tokens=100)
    run = speclib.simulate("ssd", **how)
    counts = acceptance(run)
    assert sum(counts.accepted) == run.stats.accepted
    assert sum(counts.tested) - sum(counts.accepted) == run.stats.rejected
    assert counts.windows < run.stats.rounds


@pytest.mark.parametrize("method", ["speculative", "pearl"])
def test_the_rates_that_are_given_come_out(method):
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
        assert counts.mean_length == pytest.approx(expected_length(RATES), rel=0.03)
    else:  # a block that goes on from an accepted one begins further down the row
        assert counts.conditional[0] < 0.9


def test_one_rate_for_all_places_is_the_rate_alone():
    alone = speclib.simulate("speculative", gamma=5, alpha=0.8, tokens=200)
    places = speclib.simulate("speculative", gamma=5, alpha=[0.8], tokens=200)
    assert places.stats == alone.stats


@pytest.mark.parametrize("method", ["speculative", "pearl", "ssd", "dsi", "tree"])
def test_with_rates_by_place_every_method_is_lossless(method):
    plain = speclib.simulate("autoregressive", tokens=60)
    assert speclib.simulate(method, alpha=RATES, tokens=60).tokens == plain.tokens


def test_expected_lengths_are_sums_of_products():
    assert expected_length([0.5, 0.5]) == 1 + 0.5 + 0.25
    assert expected_length([]) == 1


def test_a_log_of_vllm_gives_conditional_rates_that_can_be_run():
    rates = acceptance_of_log(VLLM)
    assert rates == pytest.approx((0.8, 0.6, 0.375))
    assert expected_length(rates) == pytest.approx(2.46)
    assert conditional((0.5, 0.0, 0.0)) == (0.5, 0.0, 0.0)
    run = speclib.simulate("pearl", gamma=3, alpha=rates)
    assert run.trace.meta["alpha"] == list(rates)


def test_a_log_of_llamacpp_counts_drafts_that_nobody_tested():
    """All its lines together: 75 of 110. With one draft a window that is the rate; with
    more it is higher, since those behind a failed one count as well."""
    (alone,) = acceptance_of_log(LLAMACPP, gamma=1)
    assert alone == pytest.approx(75 / 110)
    (rate,) = acceptance_of_log(LLAMACPP, gamma=4)
    assert (rate + rate**2 + rate**3 + rate**4) / 4 == pytest.approx(75 / 110)
    with pytest.raises(BadValue, match="75 accepted of all 110.*give gamma"):
        acceptance_of_log(LLAMACPP)


def test_a_rate_of_llamacpp_gives_back_the_run_that_it_came_from():
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
        "Per-position acceptance rate: 1.800, 0.500",
        "Per-position acceptance rate: 0.8.0, 0.5",
        "draft acceptance rate = 1.5 (15 accepted / 10 generated)",
        "Per-position acceptance rate: 0.800, 0.5 and cut",
        "",
        None,
        b"draft acceptance rate",
    ],
)
def test_a_log_that_cannot_be_is_refused(wrong):
    with pytest.raises(BadValue):
        acceptance_of_log(wrong, gamma=3)


def test_results_and_batches_of_them_will_do():
    run = speclib.simulate("speculative", gamma=2, batch=3, alpha=0.7)
    traces = [result.trace for result in run.batch.results]
    assert acceptance(run.batch.results) == acceptance(traces)
    assert acceptance(run) == acceptance(run.trace)


@pytest.mark.parametrize("wrong", [None, "abc", 3, [None]])
def test_what_is_no_run_is_refused(wrong):
    with pytest.raises(BadValue, match="give a result or a trace"):
        acceptance(wrong)


def test_what_is_no_log_is_refused():
    with pytest.raises(BadValue, match="Per-position acceptance rate"):
        acceptance_of_log("Avg generation throughput: 10.0 tokens/s")


def test_runs_without_a_line_of_drafts_are_refused():
    with pytest.raises(BadValue, match="no draft of a line"):
        acceptance(speclib.simulate("autoregressive").trace)


@pytest.mark.parametrize("wrong", [[], [0.5, 1.1], [0.5, "x"], "0.5", [True], None])
def test_a_vector_that_is_none_is_refused(wrong):
    with pytest.raises(BadValue, match="alpha is .*up to 1"):
        speclib.simulate(alpha=wrong)


def test_a_vector_and_doubt_exclude_each_other():
    with pytest.raises(BadValue, match="leave out one"):
        speclib.simulate(alpha=[0.9, 0.5], doubt=0.5)
