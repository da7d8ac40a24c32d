"""Statistics of hand-made runs: their values with all requests and without each."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from statistics import geometric_mean, variance

import numpy as np
import pytest
from helpers.specs import emulated_spec, measured_spec, virtual_spec
from helpers.tables import counts
from scipy.stats import ttest_1samp

from speclab.papers.statistics import (
    MOST_PARTS,
    OVER_PLAIN,
    apply_accounting,
    number_of,
)
from speclab.runs.rows import CellRuns
from speclab.runs.spec import Spec
from speclab.traces.counts import Counts
from speclib.errors import SpeclibError

MEASURED = measured_spec("pearl", 2, pair="embedded/codellama-7b-34b", task="humaneval")
VIRTUAL = virtual_spec("pearl", 2)
# Seconds of the method and of plain decoding, including half a second of prefill.
SECONDS = [(2.5, 4.5), (1.5, 6.5), (3.5, 3.5)]


def runs_of(spec: Spec, *own: Counts, base: list[Counts] | None = None) -> CellRuns:
    """A cell of these requests, with gamma 2 and c 3."""
    base = base or [counts(4.5)] * len(own)
    labels = [f"task/{number}" for number in range(len(own))]
    return CellRuns(spec, list(own), base, labels, gamma=2, c=3.0)


def runs_by_seconds(spec: Spec, seconds=SECONDS) -> CellRuns:
    own = [counts(one) for one, _ in seconds]
    return runs_of(spec, *own, base=[counts(plain) for _, plain in seconds])


def value_of(name: str, *own: Counts, scaled: int = 0) -> float:
    return number_of(name, runs_of(VIRTUAL, *own), scaled).value


# -- means over prompts, and sums ------------------------------------------------------
@pytest.mark.parametrize("spec", [MEASURED, emulated_spec()])
def test_a_timed_speed_up_is_the_geometric_mean_of_its_prompts(spec):
    number = number_of("speedup", runs_by_seconds(spec))
    assert number.n == 3
    assert number.value == pytest.approx(geometric_mean([4 / 2, 6 / 1, 3 / 3]))
    students = ttest_1samp(np.log([2, 6, 1]), 0).confidence_interval(0.95)
    assert np.log(number.interval) == pytest.approx(students)
    assert number.without["task/1"] == pytest.approx(geometric_mean([4 / 2, 3 / 3]))

    with_prefill = number_of("speedup_e2e", runs_by_seconds(spec)).value
    assert with_prefill == pytest.approx((4.5 / 2.5 * 6.5 / 1.5) ** (1 / 3))


def test_a_virtual_speed_up_is_a_ratio_of_sums():
    number = number_of("speedup", runs_by_seconds(VIRTUAL))
    assert number.value == pytest.approx((4 + 6 + 3) / (2 + 1 + 3))
    assert number.without["task/1"] == pytest.approx((4 + 3) / (2 + 3))


def test_statistics_without_a_baseline_use_sums_even_if_timed():
    """24 tokens after the first ones in 2 + 1 + 3 s."""
    assert number_of("decode_speed", runs_by_seconds(MEASURED)).value == 24 / 6


def test_a_method_that_runs_as_plain_decoding_gains_nothing():
    """Each of these statistics is even for a method that runs as plain decoding."""
    even = counts(4.5, with_tail=9, with_tail_seconds=4.5)
    for name in OVER_PLAIN:
        runs = runs_of(MEASURED, even, even, base=[even, even])
        expected = 9 if name == "passes" else 1  # a target pass for each of nine tokens
        assert number_of(name, runs).value == pytest.approx(expected), name


@pytest.mark.parametrize("spec", [MEASURED, VIRTUAL])
@pytest.mark.parametrize("name", ["speedup", "decode_speed", "acceptance_rate", "mat"])
def test_without_a_request_a_number_is_that_of_the_others(spec, name):
    runs = runs_by_seconds(spec)
    runs.stats[1] = replace(runs.stats[1], accepted=2, rejected=5)
    number = number_of(name, runs)
    for left_out in range(3):
        others = [n for n in range(3) if n != left_out]
        own, base = [runs.stats[n] for n in others], [runs.baseline[n] for n in others]
        of_others = number_of(name, runs_of(spec, *own, base=base)).value
        assert number.without[f"task/{left_out}"] == pytest.approx(of_others)


def test_many_requests_of_the_virtual_clock_are_left_out_in_twenty_parts():
    seconds = [(2.5 + n % 7, 9.5) for n in range(45)]
    number = number_of("decode_speed", runs_by_seconds(VIRTUAL, seconds))
    assert number.n == len(number.without) == MOST_PARTS == 20
    first = [own for own, _ in seconds[:43]]  # the last part is 43 and 44
    by_hand = 8 * 43 / sum(own - 0.5 for own in first)
    assert number.without["part 19"] == pytest.approx(by_hand)
    timed = number_of("decode_speed", runs_by_seconds(MEASURED, seconds))
    assert timed.n == len(timed.without) == 45


# -- each by hand ----------------------------------------------------------------------
def test_counts_by_hand():
    two = [counts(2.5, accepted=8, rejected=2), counts(2.5, accepted=4, rejected=2)]
    by_hand = {
        "run_length": 12 / 4,
        "run_tokens": 16 / 4,  # with the token that replaces the rejected draft
        "mat": 12 / 8,
        "acceptance_rate": 12 / 16,
        "accepted_share": 12 / (8 * 2),
        "tokens_per_pass": 18 / 8,
        "drafted_per_round": 16 / 8,
        "passes_per_second": 16 / 2,
        "gamma": 2,
        "c": 3.0,
    }
    for name, value in by_hand.items():
        assert value_of(name, *two) == pytest.approx(value), name
    assert value_of("target_runs", *two, scaled=180) == 8 / 18 * 180
    assert value_of("draft_runs", *two, scaled=180) == 16 / 18 * 180


# 50 tokens after the first five, in 4 s and ten steps.
TEXT = {"tokens": 55, "first_tokens": 5, "seconds": 9, "ttft": 5}
BUSY = {"step_draft": 1, "step_target": 2, "step_verify": 0.5, "step_busy": 3}
PASSES = {"accepted": 9, "rounds": 4, "draft_runs": 15}
STEPS = Counts(requests=1, steps=10, step_seconds=4, **TEXT, **BUSY, **PASSES)


def test_times_start_after_the_first_commit():
    by_hand = {
        "seconds": 8,  # per 100 tokens
        "draft_seconds": 2,
        "verify_seconds": 5,
        "busy_share": 3 / 4,
        "target_share": 2 / 4,
        "lent_share": (3 - 2 / 3) / 4,  # exact draft passes take 2 s / c
        "seconds_per_step": 0.4,
        "draft_per_step": 0.1,
        "target_per_step": 0.2,
        "verify_per_step": 0.05,
        "communication_per_step": 0.05,
        "draft_over_verify": 1 / 2,
        "accepted_of_levels": 9 / 15,  # a first round that reads drafts none
        "accepted_share": 9 / (4 * 2),
    }
    for name, value in by_hand.items():
        assert value_of(name, STEPS) == pytest.approx(value), name


def test_the_variance_is_over_the_requests_speeds():
    speeds = [10.0, 12.0, 17.0, 11.0]
    requests = [counts(0.5 + 8 / speed) for speed in speeds]
    number = number_of("speed_variance", runs_of(MEASURED, *requests))
    assert number.value == pytest.approx(variance(speeds))
    assert number.without["task/2"] == pytest.approx(variance([10.0, 12.0, 11.0]))
    assert isnan(value_of("speed_variance", requests[0]))


def test_an_error_names_the_input_that_a_statistic_lacks():
    with pytest.raises(SpeclibError, match="unknown statistic 'luck'; the nearest of"):
        value_of("luck", counts(2.5))
    runs = runs_of(VIRTUAL, counts(2.5))
    runs.gamma = None
    with pytest.raises(SpeclibError, match="gamma is None.*ask for another `stat`"):
        number_of("accepted_share", runs)
    with pytest.raises(SpeclibError, match="accounting is 'loose': give 'committed'"):
        apply_accounting("speedup", "loose")
    assert apply_accounting("speedup", "as_published") == "published_speedup"
