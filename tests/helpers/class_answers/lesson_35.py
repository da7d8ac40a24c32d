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


def round_by_cases(gamma, hit, draft, target):
    fork = draft + sum(draft for _ in range(gamma))
    beside = fork if fork > target else target
    return hit * beside + (1 - hit) * (beside + gamma * draft)


def round_by_numpy(gamma, hit, draft, target):
    return np.maximum(draft * gamma + draft, target) + draft * gamma * (1 - hit)


def round_by_fsum(gamma, hit, draft, target):
    return math.fsum(
        [max(draft * (1 + gamma), target), gamma * draft, -hit * gamma * draft]
    )


def round_by_algebra(gamma, hit, draft, target):
    fork = (gamma + 1) * draft
    return (
        0.5 * (fork + target + abs(fork - target)) + gamma * draft - gamma * draft * hit
    )


def backup_of_one_pass(gamma, hit, draft, target):
    return max((gamma + 1) * draft, target) + (1 - hit) * draft


def backup_with_a_fork(gamma, hit, draft, target):
    return max((gamma + 1) * draft, target) + (1 - hit) * (gamma + 1) * draft


def target_passes_twice(gamma, hit, draft, target):
    return max((gamma + 1) * draft, target) + (1 - hit) * (gamma * draft + target)


def forks_for_each_outcome(gamma, hit, draft, target):
    passes = (gamma + 1) * gamma + 1
    return max(passes * draft, target) + (1 - hit) * gamma * draft


def shorter_of_the_two(gamma, hit, draft, target):
    return min((gamma + 1) * draft, target) + (1 - hit) * gamma * draft


# -- one guess more --------------------------------------------------------------------
def odds_of(fan, alpha):
    gamma = len(fan) - 1
    return [(1 - alpha) * alpha**k for k in range(gamma)] + [alpha**gamma]


def guess_as_in_the_lesson(fan, alpha, power):
    gains = [
        p * (f**-power - (f + 1) ** -power)
        for p, f in zip(odds_of(fan, alpha), fan, strict=True)
    ]
    return gains.index(max(gains))


def guess_by_trying_each(fan, alpha, power):
    """The misses of every fan that has one guess more."""
    odds = odds_of(fan, alpha)
    misses = {}
    for place in range(len(fan)):
        tried = [f + (k == place) for k, f in enumerate(fan)]
        misses[place] = sum(p * f**-power for p, f in zip(odds, tried, strict=True))
    return min(misses, key=misses.get)


def guess_by_numpy(fan, alpha, power):
    counts = np.array(fan, float)
    k = np.arange(len(fan))
    odds = np.where(k < len(fan) - 1, (1 - alpha) * alpha**k, alpha**k)
    return np.argmax(odds * (counts**-power - (counts + 1) ** -power))


def guess_by_a_loop(fan, alpha, power):
    best, where, still_right = -1.0, 0, 1.0
    for k, count in enumerate(fan):
        chance = still_right * (1 - alpha) if k + 1 < len(fan) else still_right
        still_right *= alpha
        gain = chance / count**power - chance / (count + 1) ** power
        if gain > best:
            best, where = gain, k
    return where


def guess_by_sorting(fan, alpha, power):
    odds = odds_of(fan, alpha)

    def gain(k):
        return odds[k] * (1 / fan[k] ** power - 1 / (fan[k] + 1) ** power)

    return sorted(range(len(fan)), key=gain)[-1]


def guess_after_all(fan, alpha, power):
    return len(fan) - 1


def guess_at_the_beginning(fan, alpha, power):
    return 0


def fewest_guesses_per_chance(fan, alpha, power):
    odds = odds_of(fan, alpha)
    return min(range(len(fan)), key=lambda k: fan[k] * odds[k])


def counted_from_one(fan, alpha, power):
    return 1 + guess_as_in_the_lesson(fan, alpha, power)


def second_best_place(fan, alpha, power):
    odds = odds_of(fan, alpha)
    gains = [p / (f * (f + 1)) for p, f in zip(odds, fan, strict=True)]
    return sorted(range(len(fan)), key=lambda k: gains[k])[-2]


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


def block_from_the_longest(drafted, q, p, coin):
    """The first that comes up, looked at from the end."""
    weights = weights_of(drafted, q, p)
    kept = 0
    for n in range(len(drafted), 0, -1):
        if coin() < chance_of(n, weights, q, p):
            kept = n
            break
    return ended(kept, weights, drafted, q, p, coin)


def block_by_recursion(drafted, q, p, coin):
    weights = weights_of(drafted, q, p)

    def longest(n):
        if n == 0 or coin() < chance_of(n, weights, q, p):
            return n
        return longest(n - 1)

    return ended(longest(len(drafted)), weights, drafted, q, p, coin)


def block_by_one_coin(drafted, q, p, coin):
    """The length is drawn, longest first."""
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


def bonus_after_a_part(drafted, q, p, coin):
    """What follows is drawn from p, however many were kept."""
    weights = weights_of(drafted, q, p)
    kept = 0
    for n in range(1, len(weights)):
        if coin() < chance_of(n, weights, q, p):
            kept = n
    return [*drafted[:kept], draw(p[kept], coin())]


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


def weights_multiplied_without_q(drafted, q, p, coin):
    weights = [1.0]
    for i, token in enumerate(drafted):
        weights.append(weights[i] * p[i][token])
    kept = 0
    for n in range(1, len(weights)):
        if coin() < chance_of(n, weights, q, p):
            kept = n
    return ended(kept, [1.0] * len(weights), drafted, q, p, coin)


RIGHT = {
    "ssd_round": [
        round_as_in_the_lesson,
        round_by_cases,
        round_by_numpy,
        round_by_fsum,
        round_by_algebra,
    ],
    "next_guess": [
        guess_as_in_the_lesson,
        guess_by_trying_each,
        guess_by_numpy,
        guess_by_a_loop,
        guess_by_sorting,
    ],
    "block": [
        block_as_in_the_lesson,
        block_from_the_longest,
        block_by_recursion,
        block_by_one_coin,
        block_with_products,
    ],
}
WRONG = {
    "ssd_round": [
        backup_of_one_pass,
        backup_with_a_fork,
        target_passes_twice,
        forks_for_each_outcome,
        shorter_of_the_two,
    ],
    "next_guess": [
        guess_after_all,
        guess_at_the_beginning,
        fewest_guesses_per_chance,
        counted_from_one,
        second_best_place,
    ],
    "block": [
        block_without_the_last_token,
        bonus_after_a_part,
        all_or_nothing,
        one_coin_for_all_lengths,
        weights_multiplied_without_q,
    ],
}
