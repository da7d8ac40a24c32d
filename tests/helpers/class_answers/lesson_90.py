"""Answers to the exercises on several machines."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


# -- a round over a network ------------------------------------------------------------
def network_round_as_a_product(gamma, draft, target, mine, theirs):
    return np.dot([gamma, 1, 2, 2], [draft, target, mine, theirs])


def network_round_by_recursion(gamma, draft, target, mine, theirs):
    if gamma == 0:
        return target + 2 * (mine + theirs)
    return draft + network_round_by_recursion(gamma - 1, draft, target, mine, theirs)


def network_round_as_a_sum(gamma, draft, target, mine, theirs):
    return sum((gamma * draft, 2 * mine, target, 2 * theirs))


def longer_message_alone(gamma, draft, target, mine, theirs):
    return gamma * draft + target + 2 * max(mine, theirs)


def two_rounds_of_messages(gamma, draft, target, mine, theirs):
    return gamma * draft + target + 4 * (mine + theirs)


def drafts_tested_one_by_one(gamma, draft, target, mine, theirs):
    return gamma * draft + target + 2 * mine + 2 * gamma * theirs


# -- a draft length for a slow network -------------------------------------------------
def length_by_algebra(draft, target, mine, theirs):
    return (target + 2 * theirs - 2 * mine) / draft


def length_in_fractions(draft, target, mine, theirs):
    draft, target, mine, theirs = map(Fraction, (draft, target, mine, theirs))
    return (target + 2 * (theirs - mine)) / draft


def length_by_solving(draft, target, mine, theirs):
    return np.linalg.solve([[draft]], [target + 2 * theirs - 2 * mine])


def messages_counted_as_drafts(draft, target, mine, theirs):
    return target / draft + 2 * (theirs - mine)


def messages_exchanged(draft, target, mine, theirs):
    return (target + 2 * mine - 2 * theirs) / draft


def one_draft_more(draft, target, mine, theirs):
    return (target + 2 * theirs - 2 * mine) / draft + 1


# -- lay a clock on our axis -----------------------------------------------------------
def clock_in_place(trips):
    trips.sort(key=lambda trip: trip[2] - trip[0])
    before, theirs, after = trips[0]
    del trips[:]
    return np.array([theirs - (before + after) / 2, (after - before) / 2])


def clock_by_numpy(trips):
    before, theirs, after = np.array(trips).T
    quickest = np.argmin(after - before)
    middle = (before + after) / 2
    return (theirs - middle)[quickest], ((after - before) / 2)[quickest]


def clock_by_recursion(trips):
    first, *others = trips
    own = (first[1] - (first[0] + first[2]) / 2, (first[2] - first[0]) / 2)
    if not others:
        return own
    best = clock_by_recursion(others)
    return own if own[1] <= best[1] else best


def smallest_offset(trips):
    before, theirs, after = min(trips, key=lambda t: abs(t[1] - (t[0] + t[2]) / 2))
    return theirs - (before + after) / 2, (after - before) / 2


def read_when_answered(trips):
    before, theirs, after = min(trips, key=lambda trip: trip[2] - trip[0])
    return theirs - after, (after - before) / 2


def quickest_answer(trips):
    before, theirs, after = min(trips, key=lambda trip: trip[2] - trip[1])
    return theirs - (before + after) / 2, (after - before) / 2


RIGHT = {
    "network_round": [
        network_round_as_a_product,
        network_round_by_recursion,
        network_round_as_a_sum,
    ],
    "network_gamma": [length_by_algebra, length_in_fractions, length_by_solving],
    "clock": [clock_in_place, clock_by_numpy, clock_by_recursion],
}
WRONG = {
    "network_round": [
        longer_message_alone,
        two_rounds_of_messages,
        drafts_tested_one_by_one,
    ],
    "network_gamma": [messages_counted_as_drafts, messages_exchanged, one_draft_more],
    "clock": [smallest_offset, read_when_answered, quickest_answer],
}
