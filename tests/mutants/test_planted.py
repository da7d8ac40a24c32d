"""For planted mistakes, the enumerator agrees with probabilities computed by hand.

Every expected value follows from the models' rows alone, by conditional probability.
``p`` is the target's row after a text, ``q`` the draft's.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers.two_models import EXACT, MODELS, VOCAB, assert_distribution, p, q

from speclab import mutants
from speclab.mutants import MUTANTS
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth


def both_accept(target: np.ndarray, draft: np.ndarray) -> np.ndarray:
    """Returns the probability that each token is drafted and accepted."""
    return np.minimum(target, draft)


def replaced(target: np.ndarray, draft: np.ndarray) -> np.ndarray:
    """Returns the probability that each token replaces a rejected draft."""
    return np.maximum(target - draft, 0)


# -- total variation -------------------------------------------------------------------
def test_total_variation_is_half_the_sum_of_differences():
    one = {(1,): 0.5, (2,): 0.3, (3,): 0.2}
    other = {(1,): 0.4, (2,): 0.2, (4,): 0.4}
    assert total_variation(one, other) == pytest.approx((0.1 + 0.1 + 0.2 + 0.4) / 2)
    assert total_variation(one, one) == 0
    assert total_variation({(1,): 1.0}, {(2,): 1.0}) == 1


# -- PEARL -----------------------------------------------------------------------------
def test_an_untested_first_draft_follows_the_drafts_distribution():
    """A text of one token follows the draft; one of three tokens mixes both models."""
    method = mutants.pearl_with_an_untested_first_draft
    assert_distribution(method, 1, lambda x: q()[x], gamma=2)

    def three(x: int, y: int, z: int) -> float:
        passed = both_accept(p(x), q(x))[y] * p(x, y)[z]
        begins_anew = replaced(p(x), q(x))[y] * q(x, y)[z]
        return q()[x] * (passed + begins_anew)

    assert_distribution(method, 3, three, gamma=2)


def test_the_error_of_an_untested_first_draft_is_the_models_total_variation():
    probabilities = outcomes(
        mutants.pearl_with_an_untested_first_draft, MODELS, 1, gamma=2
    )
    error = total_variation(probabilities, truth(MODELS["target"], 1))
    assert error == pytest.approx(np.abs(p() - q()).sum() / 2, abs=EXACT)
    assert error > 0.1


def test_a_repeated_coin_favours_drafts_after_an_accepted_one():
    """If the first draft is accepted, the coin is below its acceptance probability."""

    def two(x: int, y: int) -> float:
        first_chance = min(1.0, p()[x] / q()[x])
        second_chances = np.minimum(1.0, p(x) / q(x))
        both_pass = np.minimum(first_chance, second_chances)
        second_fails = (q(x) * (first_chance - both_pass)).sum()
        left = replaced(p(x), q(x))
        replacement = left / left.sum()

        first_passes = q()[x] * (q(x)[y] * both_pass[y] + second_fails * replacement[y])
        first_fails = replaced(p(), q())[x] * p(x)[y]
        return first_passes + first_fails

    assert_distribution(mutants.pearl_with_a_repeated_coin, 2, two, gamma=2)


def test_algorithm_2_as_printed_tests_a_draft_with_the_row_after_it():
    """In a text of one token, a draft that passes pre-verify is tested again."""

    def one(y: int) -> float:
        probability = replaced(p(), q())[y]
        for draft in range(VOCAB):
            passed_once = both_accept(p(), q())[draft]
            chance = min(1.0, p(draft)[draft] / q()[draft])
            left = replaced(p(draft), q())
            replacement = left / left.sum()
            tested_again = chance * (y == draft) + (1 - chance) * replacement[y]
            probability += passed_once * tested_again
        return probability

    assert_distribution(mutants.algorithm_2_as_printed, 1, one, gamma=2)


# -- EasySpec --------------------------------------------------------------------------
def test_algorithm_3_replaces_the_second_draft_from_the_first_rows_residual():
    """With two tokens and two drafts, only the second token can be wrong.

    After an accepted first token comes an accepted draft or the listing's replacement.
    If the first token is a replacement, a new block begins.
    """
    left = np.maximum(p() - q(), 0)
    probabilities = outcomes(
        mutants.easyspec_algorithm_3_as_printed, MODELS, 2, gamma=2
    )

    for x, y in product(range(VOCAB), repeat=2):
        accepted = min(p()[x], q()[x])
        second = np.minimum(p(x), q(x))
        rejected = 1 - second.sum()
        after_accepted = second[y] + rejected * left[y] / left.sum()
        expected = accepted * after_accepted + left[x] * p(x)[y]
        assert probabilities.get((x, y), 0.0) == pytest.approx(expected, abs=1e-12)


# -- REST ------------------------------------------------------------------------------
def test_a_draw_per_branch_favours_the_branches_tokens():
    """The branches are 1 and 2; if neither agrees, the token is drawn again."""

    def two(x: int, y: int) -> float:
        neither = (1 - p()[1]) * (1 - p()[2])
        agreed = {0: 0.0, 1: p()[1], 2: (1 - p()[1]) * p()[2]}
        return (agreed[x] + neither * p()[x]) * p(x)[y]

    assert_distribution(mutants.tree_with_a_draw_per_branch, 2, two)


# -- all mistakes ----------------------------------------------------------------------
@pytest.mark.parametrize("name", MUTANTS)
def test_without_the_mistake_the_method_is_exact_and_with_it_wrong(name):
    mistake = MUTANTS[name]
    models = {"draft": Random(VOCAB, 10, 4), "target": Random(VOCAB, 20, 4)}

    own = truth(models["target"], 3)
    right = outcomes(mistake.right, models, 3, **mistake.settings)
    mistaken = outcomes(mistake.mistaken, models, 3, **mistake.settings)

    assert total_variation(right, own) < EXACT
    assert total_variation(mistaken, own) > 0.01
    assert sum(mistaken.values()) == pytest.approx(1, abs=EXACT)
