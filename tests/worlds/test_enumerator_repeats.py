"""The enumerator finds out that a method takes chance from elsewhere than its coins."""

from __future__ import annotations

import itertools

import pytest

from speclib.models.toy import Random
from speclib.worlds.enumerator import NotRepeatable, outcomes


def test_a_method_that_does_something_else_each_time_is_named():
    """At first its coin has three outcomes, at every later walk two."""
    vocabularies = itertools.chain([[0.2, 0.3, 0.5]], itertools.repeat([0.4, 0.6]))

    def changing(world):
        row = next(vocabularies)
        world.commit((world.coins.choose(row, 1, "target"),))

    models = {"draft": Random(3, 1), "target": Random(3, 2)}
    with pytest.raises(NotRepeatable, match="choice 1 of this walk has 2 outcomes"):
        outcomes(changing, models, 1)
