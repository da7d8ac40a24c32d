"""Mistakes in rules for candidates and trees are named, as in rules for sequences.

The rules are written as in published code; none is from the library.
"""

from __future__ import annotations

import numpy as np
import pytest

from speclib import check, draw


def less(p, row):
    left = np.maximum(p - row, 0)
    return left / left.sum() if left.sum() > 0 else p


def endpoint_from_p(candidates, q, p, coin):
    left = p
    for token, row in zip(candidates, q, strict=True):
        if coin() < left[token] / row[token]:
            return token
        left = less(left, row)
    return draw(p, coin())


def all_of_p_and_endpoint_from_p(candidates, q, p, coin):
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
    return draw(p, coin())


def all_of_p(candidates, q, p, coin):
    left = p
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        left = less(left, row)
    return draw(left, coin())


def rejected_out(candidates, q, p, coin):
    p = p.copy()
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p[token] = 0
        p = p / p.sum()
    return draw(p, coin())


def first(candidates, q, p, coin):
    return candidates[0] if candidates else draw(p, coin())


def upside_down(candidates, q, p, coin):
    for token, row in zip(candidates, q, strict=True):
        if p[token] == 0 or coin() < row[token] / p[token]:
            return token
        p = less(p, row)
    return draw(p, coin())


def without_q(candidates, q, p, coin):
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token]:
            return token
        p = less(p, row)
    return draw(p, coin())


def likeliest(candidates, q, p, coin):
    return int(np.argmax(p))


def likeliest_endpoint(candidates, q, p, coin):
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p = less(p, row)
    return int(np.argmax(p))


def one_coin(candidates, q, p, coin):
    u = coin()
    for token, row in zip(candidates, q, strict=True):
        if u < p[token] / row[token]:
            return token
        p = less(p, row)
    return draw(p, coin())


NAMES = {
    endpoint_from_p: "residual from p",
    all_of_p_and_endpoint_from_p: "residual from p",
    all_of_p: "p not taken off",
    rejected_out: "rejected token taken out",
    first: "untested drafts",
    upside_down: "ratio upside down",
    without_q: "q forgotten in the test",
    likeliest: "greedy test when sampling",
    likeliest_endpoint: "likeliest token for a replacement",
    one_coin: "reused coin",
}


def down_a_tree(pick):
    """Returns a rule for trees that continues below the child of the picked token."""

    def rule(tokens, parents, q, p, coin):
        node, committed = -1, []
        while node is not None:
            children = [i for i, parent in enumerate(parents) if parent == node]
            rows = [q[child] for child in children]
            token = pick([tokens[i] for i in children], rows, p[node + 1], coin)
            committed.append(token)
            node = next((i for i in children if tokens[i] == token), None)
        return committed

    return rule


@pytest.mark.parametrize("rule, name", NAMES.items())
def test_a_wrong_rule_for_candidates_is_named(rule, name):
    for put_back in (False, True):
        answer = check(rule, put_back=put_back)
        assert answer.is_lossless is False
        assert answer.mistake == name
        assert answer.question


@pytest.mark.parametrize("rule, name", list(NAMES.items())[::4])
def test_the_same_rule_down_a_tree_has_the_same_name(rule, name):
    answer = check(down_a_tree(rule))
    assert answer.is_lossless is False
    assert answer.mistake == name
