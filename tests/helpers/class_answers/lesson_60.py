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


RIGHT = {
    "break_even": [share_of_a_pass, share_in_fractions, share_by_recursion],
    "best_gamma": [gamma_of_all_lengths, gamma_by_recursion, gamma_of_a_sorted_list],
}
WRONG = {
    "break_even": [share_of_both_passes, half_of_the_share, share_at_five],
    "best_gamma": [fifty_left_out, one_left_out, counted_from_zero, all_or_nothing],
}
