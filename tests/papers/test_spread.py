"""A variance from many small groups: what it is worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from speclab.papers.spread import Spread, pooled_spread


def test_groups_are_averaged_by_their_degrees_of_freedom():
    pooled = pooled_spread([Spread(1.0, 1), Spread(4.0, 3)])
    assert pooled.variance == pytest.approx((1 * 1 + 3 * 4) / 4)


def test_a_group_without_two_numbers_says_nothing():
    assert pooled_spread([]) is None
    assert pooled_spread([Spread(0.0, 0)]) is None
    assert pooled_spread([Spread(9.0, 0), Spread(1.0, 2)]) == Spread(1.0, 2)


def test_equal_variances_are_worth_all_their_freedom():
    assert pooled_spread([Spread(2.0, 3)] * 5) == Spread(2.0, pytest.approx(15))


def test_variances_that_differ_are_worth_less():
    """By hand: variances 0 and 2 about 1, each off by 1; 2 / (2 * 2/4) = 2 for the
    mean's own freedom; (2 - 2) / 3 = 0 for what is more than chance, of one freedom."""
    assert pooled_spread([Spread(0.0, 1), Spread(2.0, 1)]) == Spread(1.0, 2)
    many = [Spread(0.1, 10), Spread(1.9, 10)] * 10
    assert pooled_spread(many).freedom < 10


NOISES = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("differing", [0.0, 0.5])
@pytest.mark.parametrize("numbers", [2, 4, 8])
def test_intervals_of_six_groups_hold_the_mean_in_95_percent_of_2000_trials(
    noise, differing, numbers
):
    """Six groups: two numbers each are enough. 95 % of 2,000 trials deviate by 0.5 %;
    what is asked for is four deviations below, with a chance of failing of 1 in 30,000.

    ``differing``: the standard deviation of the logarithms of the groups' own.
    """
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(2000):
        deviations = np.exp(differing * rng.normal(size=6))
        drawn = NOISES[noise](rng, (6, numbers)) * deviations[:, None]
        groups = [Spread(float(g.var(ddof=1)), numbers - 1) for g in drawn]
        spread = pooled_spread(groups)
        reach = stdtrit(spread.freedom, 0.975) * np.sqrt(spread.variance / numbers)
        held += abs(drawn[0].mean()) <= reach
    assert held / 2000 > 0.93
