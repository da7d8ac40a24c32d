"""Answers to the exercises on reading a table."""

from __future__ import annotations

import statistics

import numpy as np


# -- an interval -----------------------------------------------------------------------
def interval_by_numpy(values, t):
    half = t * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values) + np.array([-half, half])


def interval_by_statistics(values, t):
    half = t * statistics.stdev(values) / len(values) ** 0.5
    return statistics.mean(values) - half, statistics.mean(values) + half


def interval_in_place(values, t):
    """What is subtracted from the values changes them."""
    values = np.asarray(values, dtype=float)
    mean = values.mean()
    values -= mean
    values *= values
    half = t * (values.sum() / (len(values) - 1) / len(values)) ** 0.5
    return tuple(mean + sign * half for sign in (-1, 1))


def about_the_median(values, t):
    half = t * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.median(values) - half, np.median(values) + half


def always_two_errors(values, t):
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values) - half, np.mean(values) + half


def root_of_n_less_one(values, t):
    half = t * np.std(values, ddof=1) / np.sqrt(len(values) - 1)
    return np.mean(values) - half, np.mean(values) + half


# -- yes, no or open -------------------------------------------------------------------
def verdict_as_in_the_lesson(low, high, least, most):
    if least <= low and high <= most:
        return "yes"
    if high < least or most < low:
        return "no"
    return "open"


def verdict_from_a_table(low, high, least, most):
    inside = (least <= low <= most) + (least <= high <= most)
    is_apart = max(low, least) > min(high, most)
    return {2: "yes"}.get(inside, "no" if is_apart else "open")


def verdict_by_numpy(low, high, least, most):
    is_yes = low >= least and high <= most
    is_no = high < least or low > most
    return np.select([is_yes, is_no], ["yes", "no"], "open").item()


def ends_left_out(low, high, least, most):
    if least < low and high < most:
        return "yes"
    if high < least or most < low:
        return "no"
    return "open"


def touching_is_no(low, high, least, most):
    if least <= low and high <= most:
        return "yes"
    if high <= least or most <= low:
        return "no"
    return "open"


def only_below_is_no(low, high, least, most):
    if least <= low and high <= most:
        return "yes"
    return "no" if high < least else "open"


# -- two counts of one run -------------------------------------------------------------
def counts_of_columns(passes):
    accepted, rejected = np.array(passes).T
    return np.array([accepted.mean(), accepted.sum() / rejected.sum()])


def counts_by_popping(passes):
    passes = list(passes)
    count, accepted, rejected = len(passes), 0, 0
    while passes:
        own, one = passes.pop()
        accepted += own
        rejected += one
    return [accepted / count, accepted / rejected]


def counts_by_recursion(passes):
    def totals(rest):
        if not rest:
            return 0, 0
        accepted, rejected = totals(rest[1:])
        return accepted + rest[0][0], rejected + rest[0][1]

    accepted, rejected = totals(passes)
    yield accepted / len(passes)
    yield accepted / rejected


def unfinished_stretch_dropped(passes):
    accepted = sum(own for own, _ in passes)
    last = max((place for place, (_, one) in enumerate(passes) if one), default=-1)
    finished = sum(own for own, _ in passes[: last + 1])
    return accepted / len(passes), finished / sum(one for _, one in passes)


def unfinished_stretch_counted(passes):
    accepted = sum(own for own, _ in passes)
    stretches = sum(one for _, one in passes) + (passes[-1][1] == 0)
    return accepted / len(passes), accepted / stretches


def tested_drafts(passes):
    accepted = sum(own for own, _ in passes)
    rejected = sum(one for _, one in passes)
    return accepted / (accepted + rejected), accepted / rejected


def rounded_counts(passes):
    accepted = sum(own for own, _ in passes)
    rejected = sum(one for _, one in passes)
    return round(accepted / len(passes)), round(accepted / rejected)


RIGHT = {
    "interval": [interval_by_numpy, interval_by_statistics, interval_in_place],
    "verdict": [verdict_as_in_the_lesson, verdict_from_a_table, verdict_by_numpy],
    "two_counts": [counts_of_columns, counts_by_popping, counts_by_recursion],
}
WRONG = {
    "interval": [about_the_median, always_two_errors, root_of_n_less_one],
    "verdict": [ends_left_out, touching_is_no, only_below_is_no],
    "two_counts": [
        unfinished_stretch_dropped,
        unfinished_stretch_counted,
        rounded_counts,
    ],
}
