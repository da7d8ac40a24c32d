"""Answers to lesson 10's optional exercise, on how many samples reveal a bug."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np


def samples_rounded_up(p, found):
    return math.ceil(4 * p * (1 - p) / (found - p) ** 2)


def samples_by_the_standard_error(p, found):
    return (2 * math.sqrt(p * (1 - p)) / abs(found - p)) ** 2


def samples_in_decimals(p, found):
    p, found = Decimal(str(p)), Decimal(str(found))
    return 4 * p * (1 - p) / (found - p) ** 2


def exact_quantile(p, found):
    return 1.96**2 * p * (1 - p) / (found - p) ** 2


def variance_of_rare_tokens(p, found):
    return 4 * p / (found - p) ** 2


def three_standard_errors(p, found):
    return 9 * p * (1 - p) / (found - p) ** 2


# -- with a named mistake --------------------------------------------------------------
def half_for_every_p(p, found):
    return (2 * 0.5 / (p - found)) ** 2


def half_over_the_difference_squared(p, found):
    error = 0.5
    return 4 * error**2 / (found - p) ** 2


def two_not_squared(p, found):
    return 2 * p * (1 - p) / (found - p) ** 2


def nothing_squared(p, found):
    return 2 * np.sqrt(p * (1 - p)) / abs(p - found)


def difference_not_squared(p, found):
    return 4 * p * (1 - p) / abs(p - found)


def half_not_squared(p, found):
    return 2 * 0.5 / abs(p - found)


RIGHT = {
    "samples": [samples_rounded_up, samples_by_the_standard_error, samples_in_decimals]
}
WRONG = {"samples": [exact_quantile, variance_of_rare_tokens, three_standard_errors]}
NAMED = {
    "samples": {
        "standard error of one half": [
            half_for_every_p,
            half_over_the_difference_squared,
        ],
        "2 not squared": [two_not_squared],
        "nothing squared": [nothing_squared],
        "difference not squared": [difference_not_squared],
        "one half, not squared": [half_not_squared],
    }
}
