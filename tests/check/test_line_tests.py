"""Tests of sequences of drafts, compared by the mean tokens that a pass commits.

``speclab.check.line`` computes the highest possible mean from both models. A separate
rule in ``test_check.py`` shows that block verification reaches it.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import speclib
from speclab.check.line import CASES
from speclib.core.sampling import Drafted
from speclib.core.verification import LINE_TESTS, beginning_chances
from speclib.worlds.enumerator import Intervals


def mean_tokens(case, test) -> float:
    """Returns the mean tokens that ``test`` commits, over all drafts and coins."""
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
def test_the_block_test_commits_the_most_and_the_ratio_test_the_most_by_draft(case):
    block = mean_tokens(case, LINE_TESTS["block"])
    ratio = mean_tokens(case, LINE_TESTS["ratio"])
    exact = mean_tokens(case, LINE_TESTS["exact"])
    assert block == pytest.approx(case.most_tokens_of_a_block, abs=1e-9)
    assert ratio == pytest.approx(case.most_tokens, abs=1e-9)
    assert exact <= ratio + 1e-9 <= block + 2e-9


# -- numbers close to 0 ----------------------------------------------------------------
@pytest.mark.parametrize("method", ["speculative", "pearl", "ssd"])
@pytest.mark.parametrize(
    "sampling",
    [{"temperature": 0.05}, {"temperature": 1.0, "top_k": 2}, {"top_p": 0.7}],
    ids=str,
)
def test_the_block_test_works_for_nearly_deterministic_models(method, sampling):
    """There the residual mass may be a rounding error, which is lost if added to 1."""
    request = {"temperature": 1.0, "max_new_tokens": 24} | sampling
    for seed in range(5):
        result = speclib.decode(
            "x",
            pair="toy",
            world="virtual",
            method=method,
            test="block",
            seed=seed,
            **request,
        )
        assert len(result.tokens) == 24


def test_a_residual_mass_that_is_a_rounding_error_causes_no_division_by_0():
    """p equals q except for one last bit, and the weight is 1."""
    q = np.array([0.5, 0.5])
    p = np.array([0.5, np.nextafter(0.5, 1)])
    chances = beginning_chances(
        [1.0, 1.0, 1.0], [Drafted(0, q), Drafted(0, q)], [p, p, p]
    )
    assert all(0 <= chance <= 1 for chance in chances)
