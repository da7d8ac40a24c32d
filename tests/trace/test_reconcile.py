"""From the predicted to the measured speed-up: cases with a known cause.

Each run differs from the prediction in one respect, so one cause explains the whole
difference. Texts are short, so chance in the acceptance rate is another cause.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import speclib
from speclab import reconcile
from speclib import Latency, SpeclibError, simulate
from speclib.trace.metrics import stats

IDLE = Latency.ratio(5, 0.1)  # a target pass takes 0.1 s
CHANCE = 0.1  # in speed-up, for 600 tokens


def runs(latency: Latency = IDLE, *, alpha=0.8, of_others=None, method="pearl", **how):
    """Returns plain decoding, a method's run, and speculative decoding."""
    idle = of_others or latency
    return (
        simulate("autoregressive", tokens=600, latency=idle),
        simulate(method, alpha=alpha, tokens=600, latency=latency, **how),
        simulate("speculative", alpha=alpha, tokens=600, latency=idle),
    )


def others(found, cause: str) -> list[float]:
    """Returns the shares of all causes except ``cause`` and short texts' chance."""
    return [
        share
        for name, share in found.shares.items()
        if name not in {cause, "acceptance"}
    ]


@pytest.mark.parametrize("method", ["speculative", "pearl", "dsi", "duodecoding"])
def test_a_run_as_expected_has_nothing_to_explain(method):
    found = reconcile(*runs(method=method), c=5, alpha=0.8)
    assert others(found, "") == pytest.approx([0] * 5, abs=1e-6)
    assert found.measured == pytest.approx(found.predicted, abs=CHANCE)


def test_a_slower_draft_shows_up_as_the_cost_ratio():
    """A target pass hides ten drafts at c = 10, but only five at c = 5.

    So every round takes twice as long, except the first, in which nothing overlaps.
    """
    found = reconcile(*runs(gamma=10), c=10, alpha=0.8)
    assert found.shares["cost ratio"] == pytest.approx(-found.predicted / 2, rel=0.01)
    assert others(found, "cost ratio") == pytest.approx([0] * 4, abs=1e-6)


def test_a_lower_acceptance_rate_shows_up_as_acceptance():
    found = reconcile(*runs(alpha=0.5), c=5, alpha=0.9)
    assert found.shares["acceptance"] < -1
    assert others(found, "acceptance") == pytest.approx([0] * 5, abs=1e-6)


def test_passes_that_grow_with_their_tokens_show_up_as_longer_passes():
    found = reconcile(*runs(IDLE.lengthened(0.1)), c=5, alpha=0.8)
    assert found.shares["longer passes"] < -0.3
    assert others(found, "longer passes") == pytest.approx([0] * 4, abs=0.01)


def test_passes_that_slow_each_other_down_show_up_as_both_at_work():
    """Each takes 1.3 times as long, so the method is slower by the same factor."""
    busy = Latency.ratio(5, 0.13)
    found = reconcile(*runs(busy, of_others=IDLE), c=5, alpha=0.8)
    expected = found.predicted + found.shares["acceptance"]
    assert found.measured == pytest.approx(expected / 1.3)
    assert found.shares["both at work"] == pytest.approx(expected / 1.3 - expected)
    assert others(found, "both at work") == pytest.approx([0] * 4, abs=1e-6)


def test_time_for_requests_and_answers_shows_up_as_messages():
    """Messages take 10 ms per operation.

    A pass of plain decoding takes 0.11 s, and a round of speculative decoding, with two
    operations, 20 ms more.
    """
    plain, run, _ = (waited(result) for result in runs(method="speculative"))
    rounds, tokens = len(run.trace.commits) - 1, run.stats.tokens - 1
    found = reconcile(plain, run, c=5, alpha=0.8)
    seconds = run.stats.seconds - run.stats.ttft + rounds * 0.02
    first = run.stats.first_tokens - 1
    assert found.shares["messages"] + found.measured == pytest.approx(
        (tokens - first) / seconds * 0.11
    )


def waited(result):
    """Returns the run with messages that take 10 ms per operation."""
    events = [
        event._replace(sent=event.ts - 0.004, received=event.end + 0.006)
        for event in result.trace.events
    ]
    return replace(result, trace=replace(result.trace, events=events))


def test_without_a_run_that_does_not_overlap_two_causes_are_combined():
    plain, run, _ = runs(IDLE.lengthened(0.1))
    shares = reconcile(plain, run, c=5, alpha=0.8).shares
    assert "longer passes, both at work" in shares
    assert "both at work" not in shares


@pytest.mark.slow
def test_real_processes_leave_almost_nothing_unexplained():
    """The remainder is the time of verification and the controller."""
    pair = speclib.load_pair("embedded/once")
    with speclib.open_world("processes", pair) as world:
        results = {}
        for method in ("autoregressive", "pearl", "speculative"):
            results[method] = speclib.decode(
                "Tom had a red ball.", world=world, method=method, max_new_tokens=24
            )
    found = reconcile(*results.values())
    measured = (stats(results[name].trace) for name in ("pearl", "autoregressive"))
    pearl, plain = (each.decode_speed for each in measured)
    assert found.measured == pytest.approx(pearl / plain)
    assert sum(found.shares.values()) == pytest.approx(found.measured - found.predicted)
    assert found.not_explained < 0.2


def test_runs_of_different_texts_are_refused():
    plain, run, _ = runs()
    short = simulate("pearl", alpha=0.8, tokens=20, latency=IDLE)
    with pytest.raises(SpeclibError, match="the same prompt"):
        reconcile(plain, short)
    with pytest.raises(SpeclibError, match="plain is a run of 'pearl'"):
        reconcile(run, run)
