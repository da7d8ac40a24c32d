"""For mistakes in serving code of 2026, the enumerator agrees with hand arithmetic.

``p`` is the target's row after a text, ``q`` the draft's, and ``best`` the draft's
likeliest token.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.two_models import EXACT, MODELS, VOCAB, assert_distribution, p, q

from speclab.mutants import engine_mistakes
from speclab.mutants.engine_mistakes import ENGINE_MUTANTS
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth


def best(*text: int) -> int:
    return int(np.argmax(q(*text)))


def shares_of_a_grid(bounds, points: int = 120) -> np.ndarray:
    """Returns the shares of a grid of coin triples that accept 0, 1, 2 and 3 drafts."""
    coins = (np.arange(points) + 0.5) / points
    one, two, three = np.meshgrid(coins, coins, coins, indexing="ij")
    passed = np.zeros(one.shape, int)
    passed[one <= bounds[0]] = 1
    passed[one * two <= bounds[1]] = 2
    passed[one * two * three <= bounds[2]] = 3
    return np.bincount(passed.ravel(), minlength=4) / passed.size


# -- the planted mistakes --------------------------------------------------------------
@pytest.mark.parametrize("name", ENGINE_MUTANTS)
def test_without_the_mistake_the_method_is_exact_and_with_it_wrong(name):
    mistake = ENGINE_MUTANTS[name]
    models = {
        "draft": Random(VOCAB, 10, 1 + mistake.tokens),
        "target": Random(VOCAB, 20, 1 + mistake.tokens),
    }

    own = truth(models["target"], mistake.tokens)
    right = outcomes(mistake.right, models, mistake.tokens, **mistake.settings)
    mistaken = outcomes(mistake.mistaken, models, mistake.tokens, **mistake.settings)

    assert total_variation(right, own) < EXACT
    assert total_variation(mistaken, own) > 0.001
    assert sum(mistaken.values()) == pytest.approx(1, abs=EXACT)


def test_an_untested_last_draft_follows_the_drafts_distribution():
    """With draft length 2, of four tokens one passes early, two pass, one is untested.

    In every other case, a target row tests the fourth token.
    """

    def four(a: int, b: int, c: int, d: int) -> float:
        all_pass = (a, b, c) == (best(), best(a), best(a, b))
        last = float(d == best(a, b, c)) if all_pass else p(a, b, c)[d]
        return p()[a] * p(a)[b] * p(a, b)[c] * last

    assert_distribution(engine_mistakes.pearl_that_ends_untested, 4, four, gamma=2)


def test_a_random_draft_that_equals_the_likeliest_token_is_always_written():
    """One time in three it equals that token; otherwise the token is drawn."""

    drafts_the_likeliest = 1 / VOCAB

    def one(x: int) -> float:
        is_likeliest = x == np.argmax(p())
        drawn = (1 - drafts_the_likeliest) * p()[x]
        return drafts_the_likeliest * is_likeliest + drawn

    assert_distribution(
        engine_mistakes.random_drafts_accepted_by_argmax, 1, one, gamma=1
    )


def test_a_branch_chosen_by_the_target_passes_or_a_fixed_token_is_written():
    two_likeliest = np.argsort(-q())[:2]
    favourite = max(two_likeliest, key=lambda token: p()[token])
    chance = min(1.0, p()[favourite] / q()[favourite])
    otherwise = np.argmax(p() - q())

    def one(x: int) -> float:
        return chance * (x == favourite) + (1 - chance) * (x == otherwise)

    probabilities = outcomes(engine_mistakes.branch_chosen_by_the_target, MODELS, 1)
    for token in range(VOCAB):
        # The code adds 1e-8 to the probability before dividing by it.
        assert probabilities.get((token,), 0.0) == pytest.approx(one(token), abs=1e-6)


def test_the_first_token_of_a_block_tested_by_products():
    """Drafts are the likeliest tokens; if none passes, another token is drawn."""
    first = best()
    second = best(first)
    third = best(first, second)
    bound_1 = p()[first]
    bound_2 = bound_1 * p(first)[second]
    bound_3 = bound_2 * p(first, second)[third]
    none_passes = shares_of_a_grid((bound_1, bound_2, bound_3))[0]

    probabilities = outcomes(
        engine_mistakes.block_tested_by_products, MODELS, 1, certain=True
    )

    assert probabilities[(first,)] == pytest.approx(1 - none_passes, abs=0.01)
    for token in set(range(VOCAB)) - {first}:
        expected = none_passes * p()[token] / (1 - bound_1)
        assert probabilities[(token,)] == pytest.approx(expected, abs=0.01)
