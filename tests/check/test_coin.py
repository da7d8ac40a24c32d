"""Coins without a fixed value give every outcome, with its exact probability."""

from __future__ import annotations

import numpy as np
import pytest

from speclab.check.coin import all_outcomes
from speclib import SpeclibError


def chance(function) -> float:
    """Returns the probability that ``function(coin)`` is true."""
    return all_outcomes(lambda coin: bool(function(coin))).get(True, 0.0)


@pytest.mark.parametrize(
    "expected, function",
    [
        (0.3, lambda coin: coin() < 0.3),
        (0.7, lambda coin: coin() > 0.3),
        (0.3, lambda coin: np.float64(0.3) > coin()),
        (0.3, lambda coin: 1 - coin() < 0.3),
        (0.3, lambda coin: -coin() > -0.3),
        (0.25, lambda coin: 2 * coin() < 0.5),
        (0.6, lambda coin: coin() / 2 + 0.1 < 0.4),
        (1.0, lambda coin: coin() < 1.5),
        (0.0, lambda coin: coin() < 0),
        (0.06, lambda coin: coin() < 0.3 and coin() < 0.2),
        (0.3, lambda coin: np.log(coin()) < np.log(0.3)),
        (0.7, lambda coin: np.log(coin()) - np.log(0.3) >= 0),
        (0.5, lambda coin: np.float64(0.3) * coin() < np.float64(0.15)),
        (0.0, lambda coin: (u := coin()) < u),
    ],
)
def test_a_comparison_is_true_with_the_right_probability(expected, function):
    assert chance(function) == pytest.approx(expected, abs=1e-12)


def test_a_coin_compared_twice_is_the_same_coin():
    def both(coin):
        u = coin()
        return u < 0.3, u < 0.2, u > 0.6

    assert all_outcomes(both) == {
        (True, True, False): pytest.approx(0.2),
        (True, False, False): pytest.approx(0.1),
        (False, False, False): pytest.approx(0.3),
        (False, False, True): pytest.approx(0.4),
    }


def test_a_coin_may_be_0_and_only_a_non_strict_test_accepts_it():
    assert all_outcomes(lambda coin: coin() <= 0) == {True: 0.0, False: 1.0}
    assert all_outcomes(lambda coin: coin() < 0) == {False: 1.0}
    assert all_outcomes(lambda coin: coin() > 0) == {True: 1.0, False: 0.0}


def test_1_minus_a_coin_may_be_1_and_only_a_strict_test_rejects_it():
    assert all_outcomes(lambda coin: 1 - coin() < 1) == {True: 1.0, False: 0.0}
    assert all_outcomes(lambda coin: 1 - coin() <= 1) == {True: 1.0}
    assert all_outcomes(lambda coin: 1 - coin() >= 1) == {True: 0.0, False: 1.0}


def test_a_coin_that_was_0_stays_0():
    def twice(coin):
        u = coin()
        return u <= 0, u < 0.5, u <= 0, u >= 0.1

    assert all_outcomes(twice) == {
        (True, True, True, False): 0.0,
        (False, True, False, False): pytest.approx(0.1),
        (False, True, False, True): pytest.approx(0.4),
        (False, False, False, True): pytest.approx(0.5),
    }


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_coin_can_be_searched_in_cumulative_probabilities(side):
    sums = np.cumsum([0.2, 0.5, 0.3])
    chances = all_outcomes(lambda coin: int(np.searchsorted(sums, coin(), side)))
    possible = {token: chance for token, chance in chances.items() if chance}
    assert possible == {
        0: pytest.approx(0.2),
        1: pytest.approx(0.5),
        2: pytest.approx(0.3),
    }


@pytest.mark.parametrize("use", [np.sqrt, np.exp, np.floor])
def test_an_unsupported_use_of_a_coin_names_the_supported_ones(use):
    with pytest.raises(SpeclibError, match=r"`coin\(\) < 0.7`.*`draw\(row, coin"):
        all_outcomes(lambda coin: bool(use(coin()) < 0.5))


@pytest.mark.parametrize(
    "use", [float, int, lambda u: u * 0, lambda u: u < 1 - u, lambda u: [1, 2][u]]
)
def test_a_coins_value_is_hidden(use):
    with pytest.raises(SpeclibError, match="coin"):
        all_outcomes(lambda coin: use(coin()))
