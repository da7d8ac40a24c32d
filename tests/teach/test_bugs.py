"""The outcome tree and the five bugs that hide in it."""

from __future__ import annotations

import pytest
from helpers.svg import elements

from speclab import teach
from speclab.teach import record
from speclab.teach.bugs import HIDDEN, NO_BUG, P, Q, branches_of, method_of


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
    assert tree.spoken.startswith("Written wrongly")
    assert tree.spoken in shown.words.value


def test_every_way_is_counted_once():
    for letter in (NO_BUG, *HIDDEN):
        branches = branches_of(method_of(letter))
        assert [branch.probability for branch in branches] == pytest.approx(Q.tolist())
        for branch in branches:
            written = branch.accepted + sum(branch.replaced)
            assert written == pytest.approx(branch.probability)


def test_the_replacement_from_p_is_arithmetic():
    """Only b is rejected: 0.6 - 0.2 = 0.4 of all cases, and then replaced from p."""
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
            assert teach.find_bug(letter, other).is_right == (other == name)


@pytest.mark.parametrize(
    "letter, name, said",
    [("F", "reused coin", "no test 'F'"), ("A", "reused coins", "mean 'reused coin'")],
)
def test_an_unknown_letter_or_name_is_a_card_that_names_it(letter, name, said):
    card = teach.find_bug(letter, name)
    assert not card.is_right
    assert said in card.verdict


def test_capitals_and_spaces_of_a_name_do_not_matter():
    assert teach.find_bug(" a ", " Residual  from p ").is_right


@pytest.mark.parametrize("no_name", [(), (...,), ("...",)])
def test_a_bug_without_a_name_is_no_try(no_name):
    """As a lesson has it before a student began."""
    assert teach.find_bug("A", *no_name).heading == "○ Not begun."
    assert record.load()["exercises"] == {}
