"""The outcome tree and the five bugs hidden in it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.svg import elements

from speclab import teach
from speclab.teach.bugs import HIDDEN, NO_BUG, P, Q, branches_of, method_of


def card_of(letter: str, name: str):
    """The card for one name."""
    (card,) = teach.find_bugs(**{letter: name}).cards.values()
    return card


def test_without_a_bug_the_ways_sum_to_the_targets_probabilities():
    tree = teach.outcome_tree().tree
    assert tree.sums == pytest.approx(P.tolist(), abs=1e-12)
    assert tree.wrong == []
    assert not elements(tree.svg, "rect", "wrong")


@pytest.mark.parametrize("letter", HIDDEN)
def test_a_bug_turns_a_bar_red_and_is_said_in_words(letter):
    shown = teach.outcome_tree()
    shown.chooser.value = letter
    tree = shown.tree
    assert sum(tree.sums) == pytest.approx(1)
    assert len(elements(tree.svg, "rect", "wrong")) == len(tree.wrong) > 0
    assert tree.spoken.startswith("Wrong probabilities")
    assert tree.spoken in shown.words.value


def test_every_way_is_counted_once():
    for letter in (NO_BUG, *HIDDEN):
        branches = branches_of(method_of(letter))
        assert [branch.probability for branch in branches] == pytest.approx(Q.tolist())
        for branch in branches:
            written = branch.accepted + sum(branch.replaced)
            assert written == pytest.approx(branch.probability)


def test_the_replacement_from_p_is_arithmetic():
    """Only b is rejected, in 0.6 - 0.2 = 0.4 of all cases, and then replaced from p."""
    sums = {letter: 0.0 for letter in "abc"}
    for branch in branches_of(method_of("A")):
        sums[branch.drafted] += branch.accepted
        for token, share in zip("abc", branch.replaced, strict=True):
            sums[token] += share
    assert sums == pytest.approx(
        {"a": 0.2 + 0.4 * 0.5, "b": 0.2 + 0.4 * 0.2, "c": 0.2 + 0.4 * 0.3}
    )


def test_a_bug_is_found_by_its_own_name_alone():
    for letter, name in HIDDEN.items():
        for other in HIDDEN.values():
            assert card_of(letter, other).is_right == (other == name)


@pytest.mark.parametrize(
    "letter, name, said",
    [("F", "reused coin", "no test 'F'"), ("A", "reused coins", "mean 'reused coin'")],
)
def test_an_unknown_letter_or_name_is_a_card_that_names_it(letter, name, said):
    card = card_of(letter, name)
    assert not card.is_right
    assert said in card.verdict


# -- all five at once ------------------------------------------------------------------


def test_all_bugs_are_answered_in_one_cell():
    answer = teach.find_bugs(**HIDDEN)
    assert [card.is_right for card in answer.cards.values()] == [True] * len(HIDDEN)
    assert repr(answer).count("✓ Right.") == len(HIDDEN)
    assert answer._repr_html_().count('role="status"') == len(HIDDEN)


# -- what a wrong name is told ---------------------------------------------------------


def accepted_and_replaced(name: str) -> tuple[list[float], list[float]]:
    """How often each token is accepted, and how often it replaces another."""
    (letter,) = [letter for letter, bug in HIDDEN.items() if bug == name]
    branches = branches_of(method_of(letter))
    replaced = [sum(each) for each in zip(*(b.replaced for b in branches), strict=True)]
    return [branch.accepted for branch in branches], replaced


def test_what_is_said_of_each_bug_is_what_its_tree_shows():
    kept = np.minimum(P, Q)
    wanted = np.maximum(P - Q, 0)
    accepted, replaced = accepted_and_replaced("residual from p")
    assert accepted == pytest.approx(kept)
    assert replaced[1] > 0.01  # b, the only rejected token

    accepted, _ = accepted_and_replaced("q forgotten in the test")
    assert all(accepted < kept - 0.01)

    accepted, replaced = accepted_and_replaced("reused coin")
    assert accepted == pytest.approx(kept)
    assert replaced[1] == 0
    assert wanted[2] + 0.01 < replaced[2] < replaced[0]

    accepted, replaced = accepted_and_replaced("untested drafts")
    assert accepted == pytest.approx(Q)
    assert sum(replaced) == 0

    accepted, replaced = accepted_and_replaced("residual not normalised")
    assert accepted == pytest.approx(kept)
    assert replaced[1] == 0
    assert replaced[2] > 0.5 * sum(replaced)
