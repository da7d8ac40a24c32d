"""Each world times c once, with a few passes, and states its uncertainty."""

from __future__ import annotations

import random
from math import exp
from statistics import median

import numpy as np
import pytest

import speclib
from speclib.decoding.auto_settings import gamma_at
from speclib.worlds import cost_ratio
from speclib.worlds.cost_ratio import TRIALS, CostRatio, Trial
from speclib.worlds.processes import Processes

TOY = speclib.load_pair("toy")


# -- known durations -------------------------------------------------------------------
class Passes:
    """Passes that take about c and 1; the first takes ten times as long.

    ``noise``: the standard deviation of a duration's logarithm.
    """

    def __init__(self, c: float, noise: float = 0.0, seed: int = 0):
        self.c, self.noise = c, noise
        self.random = random.Random(seed)
        self.drafted: list[int] = []

    def take_trial(self, drafted: int) -> Trial:
        warm_up = 1 if self.drafted else 10
        self.drafted.append(drafted)
        target = warm_up * 0.02 * exp(self.random.gauss(0, self.noise))
        draft = 0.02 / self.c * exp(self.random.gauss(0, self.noise))
        return Trial(target, draft)

    def measure(self) -> CostRatio:
        return cost_ratio.measure(self.take_trial)


@pytest.mark.parametrize("c", [1.2, 3.98, 5.4])
@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_the_true_ratio_lies_between_the_extremes_in_95_of_100_measurements(c, noise):
    """With 97 % coverage, fewer than 375 hits in 400 have probability 0.02 %."""
    holds = 0
    for seed in range(400):
        ratio = Passes(c, noise, seed).measure()
        holds += ratio.low <= c <= ratio.high
    assert holds >= 375


def test_c_is_the_median_of_the_trials_and_the_first_one_does_not_count():
    passes = Passes(5.0)
    ratio = passes.measure()
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((5.0, 5.0, 5.0))
    assert ratio.target_seconds == pytest.approx(0.02)
    assert ratio.trials == TRIALS == len(passes.drafted) - 2


@pytest.mark.parametrize("c, drafted", [(0.3, 1), (4.6, 5), (7.0, 7), (90.0, 32)])
def test_the_drafts_timed_are_those_that_fit_into_a_target_pass(c, drafted):
    passes = Passes(c)
    passes.measure()
    assert passes.drafted[2:] == [drafted] * TRIALS


def test_a_disturbed_trial_moves_the_interval_but_not_c():
    trials = [Trial(0.02, 0.004)] * 5
    ratio = cost_ratio.read([*trials, Trial(0.06, 0.004)])
    assert ratio.value == median([0.02 / 0.004] * 6)
    assert str(ratio) == "c = 5 (6 trials: 5 .. 15)"


# -- in a world ------------------------------------------------------------------------
@pytest.fixture
def timed(monkeypatch) -> list[CostRatio]:
    """Worlds "time" prepared ratios in turn; returns those timed so far."""
    ratios = [CostRatio(c, c - 0.1, c + 0.1, 6, 0.05) for c in (4.2, 7.2)]
    taken: list[CostRatio] = []

    def take_next(take_trial) -> CostRatio:
        taken.append(ratios[len(taken)])
        return taken[-1]

    monkeypatch.setattr(cost_ratio, "measure", take_next)
    return taken


def test_a_world_times_c_once_and_every_method_uses_it(timed):
    with Processes(TOY) as world:
        assert timed == []  # opening a world measures nothing
        for method in ("pearl", "speculative"):
            result = speclib.decode("x", world=world, method=method, max_new_tokens=4)
            assert result.trace.meta["gamma"] == 4
            assert result.cost_ratio == timed[0]
            assert result.trace.meta["cost_ratio"]["high"] == 4.3
    with Processes(TOY) as world:
        assert world.ratio == 7.2


def test_real_passes_are_timed_concurrently():
    with Processes(TOY, servers=2) as world:
        ratio = world.cost_ratio
        assert 0 < ratio.low <= ratio.value <= ratio.high
        assert ratio.trials == TRIALS
        assert world.cost_ratio is ratio


def test_with_given_durations_c_needs_no_timing():
    for world in ("virtual", "emulated"):
        result = speclib.decode("x", pair=TOY, world=world, max_new_tokens=4)
        assert result.cost_ratio == CostRatio.known(result.cost_ratio.value)
        assert "cost_ratio" not in result.trace.meta
    assert str(CostRatio.known(5.0)) == "c = 5"


def test_a_given_draft_length_needs_no_c(timed):
    result = speclib.decode("x", pair=TOY, gamma=3, max_new_tokens=4)
    assert result.cost_ratio is None
    assert not timed


@pytest.mark.parametrize("c", [0.2, 2.5, 3.5, 2.5001])
def test_the_draft_length_is_c_rounded_with_halves_to_even(c):
    """As in IEEE 754, Python's round and numpy's, but never below 1."""
    assert gamma_at("auto", c) == max(1, int(np.rint(c)))
