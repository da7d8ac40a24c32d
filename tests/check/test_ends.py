"""End tokens: nothing may be committed after one."""

from __future__ import annotations

import numpy as np
import pytest

import speclib
from speclib import check, draw
from speclib.core.sampling import ids
from speclib.core.verification import verify


def ratio_test(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        if not coin() < p[place][token] / q[place][token]:
            left = np.maximum(p[place] - q[place], 0)
            left = left / left.sum() if left.sum() > 0 else p[place]
            return [*drafted[:place], draw(left, coin())]
    return [*drafted, draw(p[-1], coin())]


# -- rules for sequences ---------------------------------------------------------------
def cut(drafted, q, p, coin, end=None):
    committed = ratio_test(drafted, q, p, coin)
    return committed[: committed.index(end) + 1] if end in committed else committed


def end_by_keyword(drafted, q, p, coin, *, end):
    return cut(drafted, q, p, coin, end)


def end_by_place(drafted, q, p, coin, end):
    return cut(drafted, q, p, coin, end)


def stops_drafting(drafted, q, p, coin, end=None):
    """Drops the drafts after the end, but not the extra token."""
    if end in drafted:
        length = drafted.index(end) + 1
        return ratio_test(drafted[:length], q[:length], p[: length + 1], coin)
    return ratio_test(drafted, q, p, coin)


def ignores_it(drafted, q, p, coin, end=None):
    return ratio_test(drafted, q, p, coin)


def drops_the_end(drafted, q, p, coin, end=None):
    committed = ratio_test(drafted, q, p, coin)
    return committed[: committed.index(end)] if end in committed else committed


def ends_too_soon(drafted, q, p, coin, end=None):
    """Accepts a drafted end token untested."""
    if end in drafted:
        return drafted[: drafted.index(end) + 1]
    return ratio_test(drafted, q, p, coin)


@pytest.mark.parametrize("rule", [cut, end_by_keyword, end_by_place])
def test_a_rule_that_stops_at_the_end_token_is_lossless(rule):
    answer = check(rule)
    assert answer
    assert "Nothing is committed after an end token." in repr(answer)


@pytest.mark.parametrize("rule", [stops_drafting, ignores_it])
def test_tokens_after_the_end_are_found_and_named(rule):
    answer = check(rule)
    assert answer.is_lossless is False
    assert answer.mistake == "tokens behind the end"
    assert "If 0 ends the text, your function can commit (0, 0)" in answer.problem
    assert "With deterministic models it is lossless" not in repr(answer)


def test_an_untested_end_token_is_found():
    """1 is drafted in half of all texts, but the target writes it in a fifth."""
    answer = check(ends_too_soon)
    assert answer.is_lossless is False
    assert answer.problem.startswith("If 1 ends the text: Where q = (0.5, 0.5)")
    assert "is 0 with probability 0.5000; the target model says 0.8" in answer.problem


def test_an_uncommitted_end_token_is_reported():
    answer = check(drops_the_end)
    assert answer.is_lossless is None
    assert "If 0 ends the text: For the drafts [0] your function commits no" in (
        answer.problem
    )


def test_a_sampled_answer_states_that_no_end_token_was_tried():
    answer = check(ignores_it, gamma=8, vocab=50, runs=500)
    assert (answer.how, answer.problem) == ("sampled", "")
    assert "It was not tried with an end token." in repr(answer)


def test_a_path_in_a_tree_also_ends_at_the_end_token():
    def takes_all(tokens, parents, q, p, coin, end=None):
        committed = [draw(p[0], coin())]
        if committed[0] in tokens[:1]:
            committed.append(draw(p[1], coin()))
        return committed

    def takes_all_to_the_end(tokens, parents, q, p, coin, end=None):
        committed = takes_all(tokens, parents, q, p, coin)
        return committed[:1] if committed[0] == end else committed

    assert check(takes_all).mistake == "tokens behind the end"
    assert check(takes_all_to_the_end)


# -- whole methods ---------------------------------------------------------------------
def rounds(world, gamma, commit):
    """Runs speculative decoding, committing ``commit(eos, drafts, tokens)``."""
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        rows = world.wait(world.target.score(world.text + ids(drafts), len(drafts)))
        tokens = verify(world, drafts, rows).tokens
        world.commit(commit(world.eos, ids(drafts), tokens))


@pytest.mark.parametrize(
    "commit",
    [
        lambda eos, drafts, tokens: drafts if eos & {*drafts} else tokens,
        lambda eos, drafts, tokens: [t for t in tokens if t not in eos] or tokens[:1],
        lambda eos, drafts, tokens: (*tokens[:1], *eos) if eos & {*drafts} else tokens,
    ],
    ids=["untested end", "end left out", "end made up"],
)
def test_a_method_that_is_wrong_at_an_end_token_is_found(commit):
    answer = check(lambda world, gamma: rounds(world, gamma, commit), "method")
    assert answer.is_lossless is False
    assert answer.problem.startswith("If 1 ends a text: ")


def test_a_method_that_ignores_the_end_and_waits_for_the_limit_is_found(monkeypatch):
    monkeypatch.setattr("speclab.check.calls.SECONDS", 0.3)

    def until_the_limit(world, gamma):
        while world.left > 0:
            rows = world.wait(world.target.score(world.text))
            world.commit((world.coins.choose(rows[0], len(world.text), "target"),))

    answer = check(until_the_limit)
    assert answer.is_lossless is None
    assert "If 1 ends a text: it does not end" in answer.problem


def test_a_method_that_continues_after_the_end_is_reported():
    def two_in_a_round(world, gamma):
        while world.going:
            for _ in range(2):
                rows = world.wait(world.target.score(world.text))
                world.commit((world.coins.choose(rows[0], len(world.text), "target"),))

    answer = check(two_in_a_round)
    assert answer
    assert "It continues after an end token" in repr(answer)


# Checking each takes seconds.
SLOWEST = ("dsi", "easyspec", "ouroboros", "ssd", "tree")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if name in SLOWEST else ())
        for name in speclib.METHODS
    ],
)
def test_none_of_our_methods_continues_after_the_end(name):
    answer = check(name, servers=2)
    assert answer
    assert "continues after" not in repr(answer)
