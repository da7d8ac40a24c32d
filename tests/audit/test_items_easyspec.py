"""EasySpec's items: what a hand computes from the print, and what they come to."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers.audit_items import (
    assert_arithmetic_by_hand,
    assert_each_arithmetic_is_by_hand,
)
from helpers.two_models import MODELS, VOCAB, p, q

from speclab import mutants
from speclab.audit.item_schema import Run
from speclab.audit.judge_items import judge_item, produce
from speclab.audit.load_items import publication
from speclib.worlds.enumerator import outcomes

ITEMS = {item.id: item for item in publication("easyspec").items}

# The quantities that each item's arithmetic must give, from the printed cells.
BY_HAND = {
    "easyspec-peak-speedup": [{"gain": 7.63 / 2.87, "claimed": 4.17}],
    "easyspec-humaneval-total": [
        {"sum": 1.61 + 1.57, "total": 3.24},
        {"quotient": 11.79 / 3.24, "speedup": 3.64},
    ],
    "easyspec-two-baselines": [
        {"seconds": 100 / 12.89, "tp": 7.59},
        {"seconds": 100 / 8.39, "vanilla": 11.61},
    ],
    "easyspec-verification-time": [
        {"iteration": 0.0159 * (1 + 5 * 0.88), "one_pass": 1 / 13.23}
    ],
    "easyspec-accepted-shares": [
        {"iteration": (1 + 5 * 0.35) / 33.81, "one_pass": 1 / 13.23}
    ],
    "easyspec-stability": [
        {"easyspec": 15.50 / 29.52**2, "eagle": 13.86 / 23.38**2},
        {"easyspec": 12.43 / 28.00**2, "eagle": 5.96 / 18.60**2},
        {"easyspec": 4.48 / 31.05**2, "eagle": 4.16 / 23.22**2},
        {"easyspec": 9.46 / 29.29**2, "eagle": 6.35 / 21.31**2},
        {"easyspec": 6.36 / 33.79**2, "eagle": 5.78 / 26.95**2},
        {"easyspec": 16.65 / 28.45**2, "eagle": 16.41 / 23.03**2},
    ],
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_arithmetic_of_an_item_is_that_of_a_hand(name):
    assert_arithmetic_by_hand(ITEMS[name], "easyspec", BY_HAND)


def test_every_arithmetic_has_numbers_by_hand():
    assert_each_arithmetic_is_by_hand(ITEMS, BY_HAND)


# -- Algorithm 3 -----------------------------------------------------------------------
def test_algorithm_3_replaces_the_second_draft_by_what_is_left_of_the_first_row():
    """Texts of two tokens by hand, drafts of two: an error can only be in the second.

    A first token that is accepted is followed by an accepted draft, or by the listing's
    replacement; one that is a replacement itself begins a block of its own.
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


# -- verdicts --------------------------------------------------------------------------
BY_THE_PRINT = {
    "easyspec-peak-speedup": "supported",
    "easyspec-consistent": "supported",
    "easyspec-drafting-speedup": "supported",
    "easyspec-accuracy-drop": "supported",
    "easyspec-eagle-llama-3": "supported",
    "easyspec-eagle-llama-3.3": "supported",
    "easyspec-tp-size": "supported",
    "easyspec-groups": "supported",
    "easyspec-similarities": "supported",
    "easyspec-stability": "open",
    "easyspec-accepted-shares": "open",
    "easyspec-accuracy-carries-over": "open",
    "easyspec-two-baselines": "open",
    "easyspec-humaneval-total": "not supported",
    "easyspec-verification-time": "not supported",
}


@pytest.mark.parametrize("name", BY_THE_PRINT)
def test_the_print_gives_this_verdict(name):
    assert not any(isinstance(piece, Run) for piece in ITEMS[name].evidence)
    assert judge_item(ITEMS[name], "easyspec").verdict == BY_THE_PRINT[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, answer", [("easyspec-lossless", "yes"), ("easyspec-algorithm-3", "no")]
)
def test_what_exact_runs_answer(name, answer):
    for piece in ITEMS[name].evidence:
        if isinstance(piece, Run):
            assert produce(piece, "easyspec", requests=2).answer == answer, piece
