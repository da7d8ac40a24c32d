"""Drafts can be drawn from q, or be its likeliest tokens, or come from its top-k."""

from __future__ import annotations

import numpy as np
import pytest

from speclab.check.line import LIKELIEST_DRAFTED
from speclib import SpeclibError, check, draw


def ratio_test(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        if not coin() < p[place][token] / q[place][token]:
            left = np.maximum(p[place] - q[place], 0)
            left = left / left.sum() if left.sum() > 0 else p[place]
            return [*drafted[:place], draw(left, coin())]
    return [*drafted, draw(p[-1], coin())]


def sure_of_its_drafts(drafted, q, p, coin):
    """The ratio test with a one-hot q, which matches how the drafts are chosen."""
    one_hot = np.zeros_like(q)
    one_hot[np.arange(len(drafted)), drafted] = 1
    return ratio_test(drafted, one_hot, p, coin)


def sure_and_replaced_from_p(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        if not coin() < p[place][token]:
            return [*drafted[:place], draw(p[place], coin())]
    return [*drafted, draw(p[-1], coin())]


def exact_match(drafted, q, p, coin):
    committed = []
    for token, row in zip(drafted, p, strict=False):
        committed.append(draw(row, coin()))
        if committed[-1] != token:
            return committed
    return [*committed, draw(p[-1], coin())]


def of_the_two_likeliest(drafted, q, p, coin):
    """The ratio test with the distribution of drafts under drawn="top-k"."""
    kept = np.zeros_like(q)
    for place, row in enumerate(q):
        best = np.argsort(-row, kind="stable")[:2]
        kept[place][best] = row[best] / row[best].sum()
    return ratio_test(drafted, kept, p, coin)


def test_a_published_bug_is_reported_with_its_numbers():
    """In huggingface/transformers, issue 32867, q = (0.8, 0.2) and p = (0.6, 0.4).

    0 is always drafted, and kept with probability 0.6 / 0.8; otherwise 1 is written.
    """
    answer = check(ratio_test, drawn="argmax")
    assert not answer
    assert "q = (0.8, 0.2) and p = (0.6, 0.4)" in answer.problem
    assert (
        "is 0 with probability 0.7500; the target model says 0.6000" in answer.problem
    )
    assert answer.mistake == "divides by q although the draft was not drawn from it"

    case = LIKELIEST_DRAFTED
    assert case.difference(case.distribution(ratio_test)) is None


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    "rule, lossless",
    [
        (ratio_test, {"q"}),
        (exact_match, {"q", "argmax", "top-k"}),
        (sure_of_its_drafts, {"q", "argmax", "top-k"}),
        (sure_and_replaced_from_p, set()),
        (of_the_two_likeliest, {"top-k"}),
    ],
)
def test_a_rule_is_lossless_for_drafts_chosen_as_it_assumes(rule, lossless):
    for drawn in ("q", "argmax", "top-k"):
        answer = check(rule, drawn=drawn)
        assert bool(answer) == (drawn in lossless), answer


def test_a_rule_that_needs_drafts_drawn_from_q_is_reported():
    said = repr(check(ratio_test))
    assert "This holds if each draft is drawn from q." in said
    assert "the likeliest token of q (drawn='argmax'), the rule is not lossless" in said
    assert "is 0 with probability 0.7500" in said
    assert "That is so" not in repr(check(exact_match))


def test_no_rate_exceeds_what_the_choice_of_drafts_allows():
    """A certain draft is kept with probability p(x), here a mean of 1.6 tokens."""
    rate = check(sure_of_its_drafts, drawn="argmax").rate
    assert rate.value == pytest.approx(rate.best["token by token"], abs=1e-9)
    assert LIKELIEST_DRAFTED.choice == "q"


def test_children_and_candidates_can_be_chosen_in_the_same_ways():
    def by_ratio(candidates, q, p, coin):
        for token, row in zip(candidates, q, strict=True):
            if coin() < p[token] / row[token]:
                return token
            p = np.maximum(p - row, 0)
            p = p / p.sum() if p.sum() > 0 else row
        return draw(p, coin())

    def by_p_alone(candidates, q, p, coin):
        p = p.copy()
        for token in candidates:
            if coin() < p[token]:
                return token
            p[token] = 0
            p = p / p.sum()
        return draw(p, coin())

    def down_a_tree(tokens, parents, q, p, coin):
        node, committed = -1, []
        while True:
            children = [i for i, parent in enumerate(parents) if parent == node]
            token = by_p_alone([tokens[i] for i in children], q, p[node + 1], coin)
            committed.append(token)
            node = next((i for i in children if tokens[i] == token), None)
            if node is None:
                return committed

    assert check(by_ratio)
    wrong = check(by_ratio, drawn="argmax")
    assert wrong.mistake == "divides by q although the draft was not drawn from it"
    for drawn in ("q", "argmax", "top-k"):
        assert check(by_p_alone, drawn=drawn)
        assert check(by_p_alone, drawn=drawn, put_back=True)
        assert check(down_a_tree, drawn=drawn)


def test_large_vocabularies_are_sampled_with_the_same_drafts():
    answer = check(ratio_test, drawn="argmax", vocab=50, gamma=4, runs=2000)
    assert (answer.how, answer.is_lossless) == ("sampled", False)
    assert "Each draft was the likeliest token of q." in repr(answer)
    right = check(sure_of_its_drafts, drawn="argmax", vocab=50, gamma=4, runs=2000)
    assert (right.how, right.problem) == ("sampled", "")


@pytest.mark.parametrize(
    "drawn", ["nonsense", "Q", "top_k", "", None, 3, ["q"], np.array([1, 2])]
)
def test_an_unknown_choice_is_refused_with_the_known_ones(drawn):
    with pytest.raises(SpeclibError, match="give 'q', 'argmax' or 'top-k'"):
        check(ratio_test, drawn=drawn)


def test_a_method_chooses_its_drafts_itself():
    with pytest.raises(SpeclibError, match="drawn is for a rule; this is a method"):
        check("pearl", drawn="argmax")


# -- a rule that never reads q ---------------------------------------------------------
def test_a_rule_that_is_slow_because_it_never_reads_q_is_reported():
    def reads_the_shape(drafted, q, p, coin):
        assert len(q) == len(drafted)
        return exact_match(drafted, q, p, coin)

    def tests_one_alone(drafted, q, p, coin):
        return ratio_test(drafted[:1], q[:1], p[:2], coin)

    reason = "because it never reads q"
    for slow in (exact_match, reads_the_shape, sure_of_its_drafts):
        assert reason in repr(check(slow)), slow
    assert reason in repr(check(exact_match, array=list))
    for reads_it in (ratio_test, tests_one_alone):
        assert reason not in repr(check(reads_it)), reads_it
    assert reason not in repr(check(exact_match, drawn="argmax"))  # it is lossless
