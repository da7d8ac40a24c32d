"""The tests of drafts in a line, by how many tokens a pass commits in the mean.

The most that is possible is worked out from both models in ``checking.line``; that
block verification reaches it is shown there with a rule of the tests' own.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from speclib.checking.line import CASES
from speclib.core.sampling import Drafted
from speclib.core.verification import LINE_TESTS
from speclib.worlds.enumerator import Intervals


def mean_tokens(case, test) -> float:
    """How many tokens ``test`` commits, over all drafts and outcomes of its coins."""
    mean = 0.0
    for tokens, probability in case.proposals():
        drafted = [
            Drafted(token, row)
            for token, row in zip(tokens, case.q_rows(tokens), strict=True)
        ]
        rows = np.stack(case.p_rows(tokens))
        path = []
        while path is not None:
            coins = Intervals(path)
            world = SimpleNamespace(text=(), coins=coins, mark=lambda *_: None)
            committed = test(world, drafted, rows).tokens
            mean += probability * coins.mass * len(committed)
            path = coins.following()
    return mean


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_block_test_commits_the_most_and_the_ratio_test_what_each_draft_allows(
    case,
):
    block = mean_tokens(case, LINE_TESTS["block"])
    ratio = mean_tokens(case, LINE_TESTS["ratio"])
    exact = mean_tokens(case, LINE_TESTS["exact"])
    assert block == pytest.approx(case.most_tokens_of_a_block, abs=1e-9)
    assert ratio == pytest.approx(case.most_tokens, abs=1e-9)
    assert exact <= ratio + 1e-9 <= block + 2e-9
