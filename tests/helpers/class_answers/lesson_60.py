"""Answers to the exercises on which method is fastest when."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


# -- when does a draft pay at all? -----------------------------------------------------
def share_of_a_pass(c):
    return 1 / c


def share_in_fractions(c):
    return Fraction(1) / Fraction(c)


def share_by_recursion(c, low=0.0, high=1.0):
    middle = (low + high) / 2
    if high - low < 1e-9:
        return middle
    if middle * c < 1:
        return share_by_recursion(c, middle, high)
    return share_by_recursion(c, low, middle)


def share_of_both_passes(c):
    return 1 / (c + 1)


def half_of_the_share(c):
    return 1 / (2 * c)


def share_at_five(c):
    return 0.2


# -- the best draft length -------------------------------------------------------------
def tokens_per_second(alpha, c, gamma):
    return sum(alpha**i for i in range(gamma + 1)) / (gamma / c + 1)


def gamma_of_all_lengths(alpha, c):
    return max(range(1, 51), key=lambda gamma: tokens_per_second(alpha, c, gamma))


def gamma_by_recursion(alpha, c, gamma=1):
    if gamma == 50:
        return 50
    better = gamma_by_recursion(alpha, c, gamma + 1)
    is_better = tokens_per_second(alpha, c, better) > tokens_per_second(alpha, c, gamma)
    return better if is_better else gamma


def gamma_of_a_sorted_list(alpha, c):
    speeds = [(-tokens_per_second(alpha, c, gamma), gamma) for gamma in range(1, 51)]
    return sorted(speeds)[0][1]


def fifty_left_out(alpha, c):
    return max(range(1, 50), key=lambda gamma: tokens_per_second(alpha, c, gamma))


def one_left_out(alpha, c):
    return max(range(2, 51), key=lambda gamma: tokens_per_second(alpha, c, gamma))


def counted_from_zero(alpha, c):
    speeds = [tokens_per_second(alpha, c, gamma) for gamma in range(1, 51)]
    return int(np.argmax(speeds))


def all_or_nothing(alpha, c):
    def speed(gamma):
        return (1 + gamma * alpha**gamma) / (gamma / c + 1)

    return max(range(1, 51), key=speed)


# -- how long is a pass that n devices share? ------------------------------------------
def savings_subtracted(n, alone, reading, joining):
    saved = reading * (n - 1) / n
    return alone - saved + joining * (n > 1)


def in_fractions(n, alone, reading, joining):
    parts = [Fraction(alone), -Fraction(reading), Fraction(reading) / n]
    parts += [Fraction(joining)] * min(n - 1, 1)
    return sum(parts)


def slowest_of_all_devices(n, alone, reading, joining):
    parts = np.full(n, reading / n) + (alone - reading)
    return parts.max() + (joining if len(parts) > 1 else 0)


def halved_however_many(n, alone, reading, joining):
    return alone if n == 1 else alone - reading / 2 + joining


def joined_from_three_on(n, alone, reading, joining):
    return alone - reading + reading / n + (joining if n > 2 else 0.0)


def never_slower_than_alone(n, alone, reading, joining):
    if n == 1:
        return alone
    return min(alone, alone - reading + reading / n + joining)


# -- up to which batch -----------------------------------------------------------------
def limit_as_in_the_lesson(tokens, rows, fixed, per_token, draft):
    saved = fixed * (tokens - 1) - draft
    return saved / (per_token * (rows - tokens))


def limit_by_a_linear_equation(tokens, rows, fixed, per_token, draft):
    slope = per_token * (tokens - rows)
    return float(np.linalg.solve([[slope]], [fixed + draft - tokens * fixed])[0])


def limit_by_fractions(tokens, rows, fixed, per_token, draft):
    values = [Fraction(value) for value in (tokens, rows, fixed, per_token, draft)]
    e, r, c0, c1, d = values
    return float((c0 * e - c0 - d) / (c1 * r - c1 * e))


def drafting_added(tokens, rows, fixed, per_token, draft):
    return (fixed * (tokens - 1) + draft + 1) / (per_token * (rows - tokens))


def rows_without_cost(tokens, rows, fixed, per_token, draft):
    return (fixed * (tokens - 1) - draft) / per_token


def upside_down(tokens, rows, fixed, per_token, draft):
    return per_token * (rows - tokens) / (fixed * (tokens - 1) - draft)


RIGHT = {
    "seconds": [savings_subtracted, in_fractions, slowest_of_all_devices],
    "batch_limit": [
        limit_as_in_the_lesson,
        limit_by_a_linear_equation,
        limit_by_fractions,
    ],
    "break_even": [share_of_a_pass, share_in_fractions, share_by_recursion],
    "best_gamma": [gamma_of_all_lengths, gamma_by_recursion, gamma_of_a_sorted_list],
}
WRONG = {
    "seconds": [halved_however_many, joined_from_three_on, never_slower_than_alone],
    "batch_limit": [drafting_added, rows_without_cost, upside_down],
    "break_even": [share_of_both_passes, half_of_the_share, share_at_five],
    "best_gamma": [fifty_left_out, one_left_out, counted_from_zero, all_or_nothing],
}
