"""Answers to the exercises on EasySpec."""

from __future__ import annotations

from functools import reduce
from operator import itemgetter

import numpy as np

from speclab.teach import draw

from .lesson_10 import residual


# -- the time of a fuzzy pass ----------------------------------------------------------
def pass_by_counts(groups, attention, mlp):
    return len(groups) * attention + sum(groups) * mlp


def pass_by_recursion(groups, attention, mlp):
    if not groups:
        return 0
    return attention + groups[0] * mlp + pass_by_recursion(groups[1:], attention, mlp)


def pass_in_place(groups, attention, mlp):
    seconds = 0.0
    while groups:
        groups = list(groups)
        seconds += attention
        for _layer in range(groups.pop()):
            seconds += mlp
    return seconds


def attention_once(groups, attention, mlp):
    return attention + sum(groups) * mlp


def single_layers_free_of_attention(groups, attention, mlp):
    count = sum(size > 1 for size in groups)
    return count * attention + sum(groups) * mlp


def first_layer_left_out(groups, attention, mlp):
    return sum(attention + size * mlp for size in groups[1:])


# -- the time of a round ---------------------------------------------------------------
def tree_round_as_in_the_lesson(gamma, exact, fuzzy, target):
    return exact + (gamma - 1) * fuzzy + target


def tree_round_by_recursion(gamma, exact, fuzzy, target):
    if gamma == 1:
        return exact + target
    return fuzzy + tree_round_by_recursion(gamma - 1, exact, fuzzy, target)


def tree_round_in_an_array(gamma, exact, fuzzy, target):
    passes = np.full(gamma + 1, float(fuzzy))
    passes[0], passes[-1] = exact, target
    return passes.sum()


def two_exact_levels(gamma, exact, fuzzy, target):
    return 2 * exact + max(0, gamma - 2) * fuzzy + target


def one_level_less(gamma, exact, fuzzy, target):
    return exact + max(0, gamma - 2) * fuzzy + target


def exact_and_fuzzy_mixed(gamma, exact, fuzzy, target):
    return gamma * (exact + fuzzy) / 2 + target


def tested_at_every_level(gamma, exact, fuzzy, target):
    return exact + (gamma - 1) * fuzzy + gamma * target


# -- candidates for a position ---------------------------------------------------------
def pick_by_recursion(candidates, q, p, coin):
    if not candidates:
        return draw(p, coin())
    first = candidates[0]
    if coin() < p[first] / q[0][first]:
        return float(first)
    return pick_by_recursion(candidates[1:], q[1:], residual(p, q[0]), coin)


def pick_in_place(candidates, q, p, coin):
    while candidates:
        token, row = candidates.pop(0), q.pop(0)
        if coin() * row[token] < p[token]:
            return np.int64(token)
        p -= row
        p[p < 0] = 0
        p /= p.sum()
    return draw(p, coin())


def pick_with_all_coins_first(candidates, q, p, coin):
    rows = [p]
    for row in q:
        rows.append(residual(rows[-1], row) if (rows[-1] > row).any() else rows[-1])
    coins = [coin() for _ in candidates]
    for token, row, left, u in zip(candidates, q, rows[:-1], coins, strict=True):
        if u < left[token] / row[token]:
            return token
    return draw(rows[-1], coin())


def likeliest_candidate_first(candidates, q, p, coin):
    offers = [(-p[token], token, row) for token, row in zip(candidates, q, strict=True)]
    for _, token, row in sorted(offers, key=itemgetter(0)):
        if coin() < p[token] / row[token]:
            return token
        p = residual(p, row)
    return draw(p, coin())


def last_candidate_trusted(candidates, q, p, coin):
    for token, row in zip(candidates[:-1], q, strict=False):
        if coin() < p[token] / row[token]:
            return token
        p = residual(p, row)
    return candidates[-1]


def all_rows_taken_off_at_once(candidates, q, p, coin):
    all_of_q = reduce(np.add, q) / len(q)
    for token in candidates:
        if coin() < p[token] / all_of_q[token]:
            return token
    return draw(residual(p, all_of_q), coin())


RIGHT = {
    "fuzzy_pass": [pass_by_counts, pass_by_recursion, pass_in_place],
    "easy_round": [
        tree_round_as_in_the_lesson,
        tree_round_by_recursion,
        tree_round_in_an_array,
    ],
    "pick": [pick_by_recursion, pick_in_place, pick_with_all_coins_first],
}
WRONG = {
    "fuzzy_pass": [
        attention_once,
        single_layers_free_of_attention,
        first_layer_left_out,
    ],
    "easy_round": [two_exact_levels, one_level_less, exact_and_fuzzy_mixed],
    "pick": [
        likeliest_candidate_first,
        last_candidate_trusted,
        all_rows_taken_off_at_once,
    ],
}
