"""Answers to the exercise on plain decoding that several devices share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


# -- how long is a pass that n devices share? ------------------------------------------
def what_is_saved_taken_off(n, alone, reading, joining):
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


RIGHT = {"seconds": [what_is_saved_taken_off, in_fractions, slowest_of_all_devices]}
WRONG = {
    "seconds": [halved_however_many, joined_from_three_on, never_slower_than_alone]
}
