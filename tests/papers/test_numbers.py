"""Numbers and intervals: by hand, against Student's t, and with the stated coverage."""

from __future__ import annotations

from math import exp, inf, isnan, nan

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp, ttest_rel

from speclab.papers.numbers import Number, average, divide, mean_number, subtract

SLOW = np.array([3.0, 9.0, 5.0, 14.0])
GAINS = np.array([1.1, 1.3, 1.2, 1.15])


def of_each(statistic, *columns) -> Number:
    """A statistic of columns of numbers with one entry per request."""
    columns = [np.asarray(column, float) for column in columns]
    count = len(columns[0])
    without = {}
    for left_out in range(count):
        rest = [np.delete(column, left_out) for column in columns]
        without[f"task/{left_out}"] = float(statistic(*rest)) if count > 1 else nan
    return Number(float(statistic(*columns)), without, n=count)


def geometric_mean(values) -> float:
    return exp(np.log(values).mean())


def speed_up(values) -> Number:
    """The geometric mean of speed-ups, one per prompt."""
    return of_each(geometric_mean, values)


# -- the interval ----------------------------------------------------------------------
def test_the_manuals_example():
    """2, 4 and 8: 4 * exp(-1.722) .. 4 * exp(1.722)."""
    number = speed_up([2, 4, 8])
    assert number.value == pytest.approx(4)
    assert number.interval == pytest.approx((0.715, 22.4), rel=2e-3)


@pytest.mark.parametrize("values", [[1.0, 4.0], [3.0, 5.0, 4.0, 9.0, 2.0]])
def test_the_interval_of_a_geometric_mean_is_students_on_logarithms(values):
    students = ttest_1samp(np.log(values), 0).confidence_interval(0.95)
    low, high = speed_up(values).interval
    assert np.log([low, high]) == pytest.approx(students)


@pytest.mark.parametrize("values", [[1.0, -4.0], [3.0, -5.0, 4.0, -9.0, 2.0]])
def test_the_interval_of_a_mean_that_may_be_negative_is_students(values):
    students = ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_number(values).interval == pytest.approx(students)


def test_a_quotient_of_the_same_prompts_is_paired():
    """A prompt's effect on both numbers cancels."""
    quotient = divide(speed_up(SLOW * GAINS), speed_up(SLOW))
    students = ttest_rel(np.log(SLOW * GAINS), np.log(SLOW)).confidence_interval(0.95)
    assert quotient.value == pytest.approx(geometric_mean(GAINS))
    assert np.log(quotient.interval) == pytest.approx(students)


def test_a_difference_of_the_same_prompts_is_paired_and_may_be_negative():
    difference = subtract(of_each(np.mean, SLOW), of_each(np.mean, SLOW + GAINS))
    students = ttest_rel(SLOW, SLOW + GAINS).confidence_interval(0.95)
    assert difference.value == pytest.approx(-GAINS.mean())
    assert difference.interval == pytest.approx(students)
    assert not difference.is_positive

    positive = subtract(of_each(np.mean, SLOW + GAINS), of_each(np.mean, SLOW))
    assert sum(positive.interval) / 2 == pytest.approx(positive.value)  # no logarithm
    assert not divide(positive, Number(2.0)).is_positive


def test_the_mean_of_columns_has_the_interval_of_the_means_of_requests():
    one, other = [3.0, 5.0, -8.0, -4.0], [1.0, -4.0, 2.0, 2.0]
    mean = average([of_each(np.mean, one), of_each(np.mean, other)])
    students = ttest_1samp(np.mean([one, other], 0), 0).confidence_interval(0.95)
    assert mean.value == pytest.approx(-0.375)
    assert mean.interval == pytest.approx(students)


def test_numbers_of_different_prompts_are_independent():
    """Their variances add, with the smaller n; the interval is up to 12 % too wide."""
    few = Number(7.75, {f"other/{i}": (31 - x) / 3 for i, x in enumerate(SLOW)}, n=4)
    many = np.linspace(-4.0, 4.0, 9)
    difference = subtract(few, of_each(np.mean, many))
    error = np.sqrt(SLOW.var(ddof=1) / 4 + many.var(ddof=1) / 9)
    half_width = np.ptp(difference.interval) / 2
    assert difference.n == 4
    assert 1 < half_width / (t.ppf(0.975, 3) * error) < 1.12


@pytest.mark.parametrize("n", [2, 4, 8])
def test_95_percent_of_the_intervals_of_ratios_of_sums_contain_the_truth(n):
    """Speeds are such ratios: all tokens over all seconds, for both methods.

    2,000 trials deviate by 0.5 %; intervals of small samples are a little too narrow.
    """
    rng = np.random.default_rng(18)
    hits = 0
    for _ in range(2000):
        plain = np.exp(rng.normal(0.0, 0.3, n))
        seconds = plain / 1.3 * np.exp(rng.normal(0.0, 0.25, n) - 0.25**2 / 2)
        low, high = of_each(lambda a, b: a.sum() / b.sum(), plain, seconds).interval
        hits += low <= 1.3 <= high
    assert 0.92 < hits / 2000 < 0.97


# -- what has no interval --------------------------------------------------------------
def test_a_number_of_one_request_has_an_unbounded_interval():
    once = speed_up([1.5])
    assert once.interval == (-inf, inf)
    assert not once.is_exact
    assert divide(once, Number(2.0)).interval == (-inf, inf)
    assert divide(once, speed_up(SLOW)).n == 1


def test_a_number_that_no_request_changes_is_exact():
    for number in (Number(1.5), Number(1.5, {"a": 1.5 + 1e-15, "b": 1.5}, n=2)):
        assert number.is_exact
        assert number.interval == (1.5, 1.5)


def test_an_exact_number_does_not_change_the_others_interval():
    exact = Number(2.0, {f"task/{i}": 2.0 for i in range(2)}, n=2)
    quotient = divide(speed_up(SLOW), exact)
    assert quotient.n == 4
    doubled = [2 * limit for limit in quotient.interval]
    assert doubled == pytest.approx(speed_up(SLOW).interval)
    assert speed_up(SLOW).times(0.5).interval == pytest.approx(quotient.interval)


def test_the_interval_leaves_out_requests_without_which_the_number_is_undefined():
    """A run of accepted drafts is undefined without the only request that rejects."""
    number = speed_up(SLOW)
    with_undefined = Number(number.value, {**number.without, "task/9": nan}, n=4)
    assert with_undefined.interval == number.interval
    assert isnan(divide(number, Number(0.0)).value)
    assert isnan(mean_number([2.0]).without["0"])
