"""The enumerator detects random numbers that do not come from a method's coins."""

from __future__ import annotations

import itertools

import pytest

from speclib.models.toy import Random
from speclib.worlds.enumerator import NotRepeatable, outcomes

MODELS = {"draft": Random(3, 1), "target": Random(3, 2)}


def drawing_from(rows):
    """A method that writes one token, drawn from another row in each run."""
    following = iter(rows)

    def method(world):
        world.commit((world.coins.choose(next(following), 1, "target"),))

    return method


def test_runs_whose_probabilities_do_not_sum_to_one_are_refused():
    """The first run has probability 0.2, the second 0.6, and no third is possible."""
    method = drawing_from(
        itertools.chain([[0.2, 0.3, 0.5]], itertools.repeat([0.4, 0.6]))
    )
    with pytest.raises(NotRepeatable, match="sum to 0.8, not to 1"):
        outcomes(method, MODELS, 1)


def test_a_choice_that_lost_outcomes_is_named():
    method = drawing_from([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.4, 0.6]])
    with pytest.raises(NotRepeatable, match="choice 1 of this run has 2 outcomes"):
        outcomes(method, MODELS, 1)
