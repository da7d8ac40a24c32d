"""Answers to the exercises on SSD and on the block test."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from speclab.check.coin import draw


# -- the time of a round ---------------------------------------------------------------
def round_as_in_the_lesson(gamma, hit, draft, target):
    beside_each_other = max((gamma + 1) * draft, target)
    return beside_each_other + (1 - hit) * gamma * draft


def round_by_numpy(gamma, hit, draft, target):
    return np.maximum(draft * gamma + draft, target) + draft * gamma * (1 - hit)


def round_by_fsum(gamma, hit, draft, target):
    return math.fsum(
        [max(draft * (1 + gamma), target), gamma * draft, -hit * gamma * draft]
    )


def backup_of_one_pass(gamma, hit, draft, target):
    return max((gamma + 1) * draft, target) + (1 - hit) * draft


def forks_for_each_outcome(gamma, hit, draft, target):
    passes = (gamma + 1) * gamma + 1
    return max(passes * draft, target) + (1 - hit) * gamma * draft


def shorter_of_the_two(gamma, hit, draft, target):
    return min((gamma + 1) * draft, target) + (1 - hit) * gamma * draft


# -- one more guess --------------------------------------------------------------------
def odds_of(fan, alpha):
    gamma = len(fan) - 1
    return [(1 - alpha) * alpha**k for k in range(gamma)] + [alpha**gamma]


def guess_as_in_the_lesson(fan, alpha, power):
    gains = [
        p * (f**-power - (f + 1) ** -power)
        for p, f in zip(odds_of(fan, alpha), fan, strict=True)
    ]
    return gains.index(max(gains))


def guess_by_numpy(fan, alpha, power):
    counts = np.array(fan, float)
    k = np.arange(len(fan))
    odds = np.where(k < len(fan) - 1, (1 - alpha) * alpha**k, alpha**k)
    return np.argmax(odds * (counts**-power - (counts + 1) ** -power))


def guess_by_sorting(fan, alpha, power):
    odds = odds_of(fan, alpha)

    def gain(k):
        return odds[k] * (1 / fan[k] ** power - 1 / (fan[k] + 1) ** power)

    return sorted(range(len(fan)), key=gain)[-1]


def guess_after_all(fan, alpha, power):
    return len(fan) - 1


def fewest_guesses_per_chance(fan, alpha, power):
    odds = odds_of(fan, alpha)
    return min(range(len(fan)), key=lambda k: fan[k] * odds[k])


def counted_from_one(fan, alpha, power):
    return 1 + guess_as_in_the_lesson(fan, alpha, power)


# -- the block test --------------------------------------------------------------------
def block_as_in_the_lesson(drafted, q, p, coin):
    weights, kept, n = [1.0], 0, len(drafted)
    for i, token in enumerate(drafted):
        weights.append(min(1.0, weights[i] * p[i][token] / q[i][token]))
    left = [np.maximum(w * a - b, 0) for w, a, b in zip(weights, p, q, strict=False)]
    chances = []
    for rest, weight in zip(left, weights, strict=False):
        chances.append(rest.sum() / ((rest.sum() + (1 - weight)) or 1))
    for i, chance in enumerate([*chances[1:], weights[n]], start=1):
        if coin() < chance:
            kept = i
    row = p[n] if kept == n else left[kept] / left[kept].sum()
    return drafted[:kept] + [draw(row, coin())]


def weights_of(drafted, q, p):
    weights = [1.0]
    for token, q_row, p_row in zip(drafted, q, p, strict=False):
        weights.append(min(1.0, weights[-1] * p_row[token] / q_row[token]))
    return weights


def excess(weight, p_row, q_row):
    return np.maximum(weight * np.asarray(p_row) - np.asarray(q_row), 0.0)


def chance_of(n, weights, q, p):
    if n == len(weights) - 1:
        return weights[n]
    mass = excess(weights[n], p[n], q[n]).sum()
    return mass / (mass + (1 - weights[n])) if mass else 0.0


def ended(kept, weights, drafted, q, p, coin):
    row = np.asarray(p[kept], float)
    if kept < len(drafted):
        row = excess(weights[kept], p[kept], q[kept])
    return [*drafted[:kept], draw(row / row.sum(), coin())]


def block_by_recursion(drafted, q, p, coin):
    weights = weights_of(drafted, q, p)

    def longest(n):
        if n == 0 or coin() < chance_of(n, weights, q, p):
            return n
        return longest(n - 1)

    return ended(longest(len(drafted)), weights, drafted, q, p, coin)


def block_by_one_coin(drafted, q, p, coin):
    """Draws the length, longest first."""
    weights = weights_of(drafted, q, p)
    none_longer, lengths = 1.0, {}
    for n in range(len(drafted), -1, -1):
        lengths[n] = none_longer * (chance_of(n, weights, q, p) if n else 1.0)
        none_longer -= lengths[n]
    row = np.array([lengths[n] for n in range(len(drafted) + 1)])
    kept = draw(row / row.sum(), coin())
    return ended(kept, weights, drafted, q, p, coin)


def block_with_products(drafted, q, p, coin):
    ratios = [p[i][token] / q[i][token] for i, token in enumerate(drafted)]
    weights = reduce(lambda done, r: [*done, min(1.0, done[-1] * r)], ratios, [1.0])
    kept = 0
    for n in range(1, len(weights)):
        if coin() < chance_of(n, weights, q, p):
            kept = n
    return tuple(ended(kept, weights, drafted, q, p, coin))


def block_without_the_last_token(drafted, q, p, coin):
    return block_as_in_the_lesson(drafted, q, p, coin)[:-1]


def all_or_nothing(drafted, q, p, coin):
    weights = weights_of(drafted, q, p)
    kept = len(drafted) if coin() < weights[-1] else 0
    return ended(kept, weights, drafted, q, p, coin)


def one_coin_for_all_lengths(drafted, q, p, coin):
    weights = weights_of(drafted, q, p)
    u = coin()
    kept = 0
    for n in range(1, len(weights)):
        if u < chance_of(n, weights, q, p):
            kept = n
    return ended(kept, weights, drafted, q, p, coin)


RIGHT = {
    "ssd_round": [round_as_in_the_lesson, round_by_numpy, round_by_fsum],
    "next_guess": [guess_as_in_the_lesson, guess_by_numpy, guess_by_sorting],
    "block": [block_by_recursion, block_by_one_coin, block_with_products],
}
WRONG = {
    "ssd_round": [backup_of_one_pass, forks_for_each_outcome, shorter_of_the_two],
    "next_guess": [guess_after_all, fewest_guesses_per_chance, counted_from_one],
    "block": [block_without_the_last_token, all_or_nothing, one_coin_for_all_lengths],
}
