"""Intervals of numbers: Student's where he has one, and right as often as they say."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp, ttest_rel

from speclab.papers.bootstrap import Resamples, draw_resamples, measured_once
from speclab.papers.estimates import (
    Estimate,
    average,
    divide,
    ledger_interval,
    subtract,
)
from speclab.papers.reach import Reach

# The bootstrap's standard error is itself drawn: of 1000 resamples it is off by
# 1 / sqrt(2 * 1000) = 2.2 % at most times, which is three of those.
DRAWN = 0.07


def mean_of(values: np.ndarray) -> Estimate:
    """The mean of values of requests, as a linear number with its resamples."""
    n = len(values)
    samples = Resamples(draw_resamples(n) @ values / n, n, signed=True)
    return Estimate(float(values.mean()), samples)


def geometric_mean_of(values: np.ndarray) -> Estimate:
    n = len(values)
    samples = Resamples(np.exp(draw_resamples(n) @ np.log(values) / n), n)
    return Estimate(float(np.exp(np.log(values).mean())), samples)


def half_width(estimate: Estimate) -> float:
    low, high = estimate.interval
    return (high - low) / 2


# -- against Student -------------------------------------------------------------------
@pytest.mark.parametrize("values", [[1.0, 4.0], [3.0, 5.0, 4.0, 9.0, 2.0]])
def test_the_interval_of_a_mean_is_students(values):
    values = np.array(values)
    students = ttest_1samp(values, 0).confidence_interval(0.95)
    estimate = mean_of(values)
    assert half_width(estimate) == pytest.approx(
        (students.high - students.low) / 2, rel=DRAWN
    )
    assert sum(estimate.interval) / 2 == pytest.approx(values.mean())


def test_a_positive_number_has_students_interval_on_the_scale_of_logarithms():
    values = np.array([1.2, 0.8, 1.9, 1.4])
    students = ttest_1samp(np.log(values), 0).confidence_interval(0.95)
    low, high = geometric_mean_of(values).interval
    assert np.log(high / low) == pytest.approx(students.high - students.low, rel=DRAWN)
    assert np.sqrt(low * high) == pytest.approx(np.exp(np.log(values).mean()))


def test_a_difference_of_as_many_requests_is_paired():
    """Each prompt is faster by one; how much prompts differ does not matter."""
    slow = np.array([3.0, 9.0, 5.0, 14.0, 7.0, 2.0])
    gain = np.array([1.0, 1.3, 0.8, 1.1, 0.9, 1.2])
    difference = subtract(mean_of(slow + gain), mean_of(slow))
    students = ttest_rel(slow + gain, slow).confidence_interval(0.95)
    assert half_width(difference) == pytest.approx(
        (students.high - students.low) / 2, rel=DRAWN
    )


def test_a_ratio_of_as_many_requests_is_paired():
    """Of log speeds it is the paired t interval of their differences."""
    slow = np.array([3.0, 9.0, 5.0, 14.0])
    gain = np.array([1.1, 1.3, 1.2, 1.15])
    ratio = divide(geometric_mean_of(slow * gain), geometric_mean_of(slow))
    students = ttest_rel(np.log(slow * gain), np.log(slow)).confidence_interval(0.95)
    low, high = ratio.interval
    assert np.log(high / low) == pytest.approx(students.high - students.low, rel=DRAWN)


def test_numbers_of_other_requests_are_independent_and_as_sure_as_the_smaller():
    """Their errors add as squares; t and correction are those of four requests."""
    few, many = np.array([3.0, 5.0, 4.0, 8.0]), np.linspace(0.0, 4.0, 9)
    difference = subtract(mean_of(few), mean_of(many))
    bootstraps_variance = few.var() / 4 + many.var() / 9
    expected = t.ppf(0.975, 3) * np.sqrt(4 / 3) * np.sqrt(bootstraps_variance)
    assert half_width(difference) == pytest.approx(expected, rel=2 * DRAWN)


# -- how often it is right -------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 4, 8])
def test_95_percent_of_the_intervals_contain_the_truth(n):
    """Speed-ups of 1.3, of single requests within a quarter of that or so."""
    rng = np.random.default_rng(17)
    times = draw_resamples(n)
    runs = 1000
    hits = 0
    for _ in range(runs):
        plain_seconds = np.exp(rng.normal(0.0, 0.3, n))
        seconds = plain_seconds / 1.3 * np.exp(rng.normal(0.0, 0.25, n))
        logarithms = np.log(plain_seconds / seconds)
        samples = Resamples(np.exp(times @ logarithms / n), n)
        low, high = Estimate(float(np.exp(logarithms.mean())), samples).interval
        hits += low <= 1.3 <= high
    # Three standard errors of a share of 0.95 among so many runs.
    assert hits / runs == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / runs) ** 0.5)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_of_ratios_of_sums_about_95_percent_contain_the_truth(n):
    """As speeds are computed: all tokens over all seconds, by both methods."""
    rng = np.random.default_rng(18)
    times = draw_resamples(n)
    runs = 1000
    hits = 0
    for _ in range(runs):
        plain_seconds = np.exp(rng.normal(0.0, 0.3, n))
        noise = np.exp(rng.normal(0.0, 0.25, n) - 0.25**2 / 2)  # its mean is 1
        seconds = plain_seconds / 1.3 * noise
        samples = Resamples((times @ plain_seconds) / (times @ seconds), n)
        low, high = Estimate(plain_seconds.sum() / seconds.sum(), samples).interval
        hits += low <= 1.3 <= high
    assert 0.91 < hits / runs < 0.98


# -- what has no interval --------------------------------------------------------------
def test_a_number_without_resamples_is_exact():
    printed = Estimate(1.5)
    assert printed.interval == (1.5, 1.5)
    assert ledger_interval(printed) is None


def test_a_number_that_is_the_same_in_every_resample_is_exact():
    """As on the virtual clock, but for floating point."""
    noise = np.linspace(-1e-16, 1e-16, 1000)
    assert Estimate(1.5, Resamples(1.5 + noise, 20)).interval == (1.5, 1.5)
    assert Estimate(0.0, Resamples(noise, 20)).interval == (0.0, 0.0)


def test_a_number_of_one_request_may_be_anything():
    once = Estimate(1.5, measured_once(1.5))
    assert once.interval == (-inf, inf)
    assert ledger_interval(once) is None
    assert divide(once, Estimate(2.0)).interval == (-inf, inf)


def test_an_exact_number_leaves_the_other_ones_interval_as_it_is():
    noisy = geometric_mean_of(np.array([1.2, 0.8, 1.9, 1.4]))
    exact = Estimate(2.0, Resamples(np.full(1000, 2.0), 2))
    low, high = divide(noisy, exact).interval
    assert (2 * low, 2 * high) == pytest.approx(noisy.interval)


def test_resamples_in_which_a_number_is_undefined_are_left_out():
    values = np.tile([1.0, 2.0, np.nan, np.inf], 250)
    defined = np.tile([1.0, 2.0], 500)
    with_undefined = Estimate(1.5, Resamples(values, 8))
    assert with_undefined.interval == Estimate(1.5, Resamples(defined, 8)).interval


def test_the_mean_of_columns_has_the_interval_of_the_means_of_requests():
    """The requests of two columns are paired by their number."""
    one, other = np.array([3.0, 5.0, 4.0, 8.0]), np.array([1.0, 4.0, 2.0, 2.0])
    mean = average([mean_of(one), mean_of(other)])
    students = ttest_1samp((one + other) / 2, 0).confidence_interval(0.95)
    assert mean.value == pytest.approx(3.625)
    assert half_width(mean) == pytest.approx(
        (students.high - students.low) / 2, rel=DRAWN
    )


# -- how many requests -----------------------------------------------------------------
@pytest.mark.parametrize("limit", [2.0, 5.9, 8.0])
def test_the_fewest_requests_are_those_found_by_trying(limit):
    values = np.array([3.0, 5.0, 4.0, 9.0, 2.0])
    estimate = mean_of(values)
    error = half_width(estimate) / t.ppf(0.975, 4)
    n = 2
    while t.ppf(0.975, n - 1) * error * np.sqrt(5 / n) >= abs(4.6 - limit):
        n += 1
    assert Reach(estimate, limit).requests_needed == n


def test_no_number_of_requests_excludes_the_number_itself():
    estimate = geometric_mean_of(np.array([1.2, 0.8, 1.9, 1.4]))
    assert Reach(estimate, estimate.value).requests_needed is None
    assert Reach(estimate, estimate.value * 1.0001).requests_needed is None
    assert Reach(estimate, 0.0).requests_needed == 2  # a ratio is never zero
