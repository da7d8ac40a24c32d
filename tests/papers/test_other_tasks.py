"""A correction that is weighed against those of the same method on other tasks."""

from __future__ import annotations

import numpy as np
import pytest

from speclab.papers.other_tasks import Mean, weighed

# Rubin's eight schools (Gelman et al., Bayesian Data Analysis, chapter 5.5): effects,
# their standard errors, and the posterior means and deviations that Stan draws for the
# same model, flat in tau; they are good to 0.04 to 0.07.
EFFECTS = (28, 8, -3, 7, -1, 1, 18, 12)
ERRORS = (15, 10, 16, 11, 9, 11, 10, 18)
STAN_MEANS = (11.42, 7.96, 6.16, 7.71, 5.15, 6.22, 10.72, 8.48)
STAN_DEVIATIONS = (8.41, 6.18, 7.72, 6.60, 6.43, 6.65, 6.85, 7.82)


def test_eight_schools_come_out_as_stan_has_them():
    schools = [
        Mean(effect, error**2) for effect, error in zip(EFFECTS, ERRORS, strict=True)
    ]
    for index, school in enumerate(schools):
        got = weighed(school, schools[:index] + schools[index + 1 :], flat_in=1)
        assert got.value == pytest.approx(STAN_MEANS[index], abs=0.25)
        assert got.variance**0.5 == pytest.approx(STAN_DEVIATIONS[index], rel=0.03)


def test_a_task_beside_fewer_than_three_others_keeps_its_own_correction():
    own = Mean(0.3, 0.01)
    for others in range(3):
        assert weighed(own, [Mean(0.1, 0.01)] * others) is own
    assert weighed(own, [Mean(0.1, 0.01)] * 3) is not own


def test_a_correction_without_any_error_is_kept():
    own = Mean(0.3, 0.0)
    assert weighed(own, [Mean(0.1, 0.01), Mean(0.2, 0.01), Mean(0.4, 0.01)]) is own


def test_tasks_that_differ_by_far_say_nothing_about_each_other():
    own = Mean(5.0, 0.01)
    got = weighed(own, [Mean(value, 0.01) for value in (-9.0, 0.0, 3.0, 12.0)])
    assert got.value == pytest.approx(5.0, abs=0.01)
    assert got.variance == pytest.approx(0.01, rel=0.01)


def test_the_unit_does_not_matter():
    others = [(1.0, 0.2), (1.7, 0.1), (0.4, 0.3)]
    small = weighed(Mean(2.0, 0.2), [Mean(*other) for other in others])
    large = weighed(Mean(200, 2000), [Mean(100 * a, 10_000 * b) for a, b in others])
    assert large.value == pytest.approx(100 * small.value)
    assert large.variance == pytest.approx(10_000 * small.variance)


@pytest.mark.parametrize("tasks", [4, 6, 12])
@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0, 3.0])
def test_intervals_hold_the_own_truth_in_95_percent_of_2000_trials(tasks, apart):
    """Tasks differ by ``apart`` times what their few prompts leave open. Four standard
    deviations below 95 % of 2,000 trials are 93 %."""
    rng = np.random.default_rng(int(10 * apart) + tasks)
    held, errors = 0, []
    for _ in range(2000):
        truths = apart * rng.normal(size=tasks)
        means = [Mean(value, 1.0) for value in truths + rng.normal(size=tasks)]
        got = weighed(means[0], means[1:])
        held += abs(got.value - truths[0]) <= 1.96 * got.variance**0.5
        errors.append(got.value - truths[0])
    assert held / 2000 > 0.93
    own_error = 1.0
    assert np.std(errors) < 1.03 * own_error
    if apart == 0 and tasks == 12:
        assert np.std(errors) < 0.55 * own_error
