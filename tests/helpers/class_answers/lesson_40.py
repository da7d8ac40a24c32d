"""Answers to the exercises on DuoDecoding."""

from __future__ import annotations

import math

import numpy as np

from speclib.core.sampling import ids
from speclib.core.verification import match


# -- the time of a round ---------------------------------------------------------------
def duo_as_in_the_lesson(gamma, k, draft, target):
    passes = 1 + k * (gamma // k - 1)
    return max(passes * draft, target)


def duo_by_recursion(gamma, k, draft, target):
    def passes(length):
        return 1 if length == 1 else k + passes(length - 1)

    return max(draft * passes(gamma // k), target)


def duo_by_algebra(gamma, k, draft, target):
    drafting = draft * (1 - k + k * math.floor(gamma / k))
    return 0.5 * (drafting + target + abs(drafting - target))


def first_pass_on_top(gamma, k, draft, target):
    return max((1 + k * (gamma // k)) * draft, target)


def longer_sequences(gamma, k, draft, target):
    return max((1 + k * (math.ceil(gamma / k) - 1)) * draft, target)


def target_for_each_sequence(gamma, k, draft, target):
    return max((1 + k * (gamma // k - 1)) * draft, k * target)


# -- how many sequences ----------------------------------------------------------------
def sequences_among_the_divisors(first, second, gamma):
    likely = [chance for chance in first if chance > max(first) * second]
    divisors = [n for n in range(1, gamma + 1) if gamma % n == 0]
    return max(n for n in divisors if n <= max(1, len(likely)))


def sequences_by_recursion(first, second, gamma):
    def divisor(most):
        return most if gamma % most == 0 else divisor(most - 1)

    ranked = sorted(first)
    count = 0
    while ranked and ranked.pop() > max(first) * second:
        count += 1
    return divisor(max(1, count))


def sequences_by_numpy(first, second, gamma):
    chances = np.array(first)
    count = max(1, np.count_nonzero(chances > chances.max() * second))
    candidates = np.arange(1, count + 1)
    return candidates[gamma % candidates == 0][-1]


def as_likely_as_theta(first, second, gamma):
    theta = max(first) * second
    count = max(1, sum(chance >= theta for chance in first))
    while gamma % count:
        count -= 1
    return count


def mean_chance_in_theta(first, second, gamma):
    theta = sum(first) / len(first) * second
    count = max(1, sum(chance > theta for chance in first))
    while gamma % count:
        count -= 1
    return count


def budget_alone(first, second, gamma):
    count = min(len(first), gamma)
    while gamma % count:
        count -= 1
    return count


# -- a round of DuoDecoding ------------------------------------------------------------
def ask_for_sequences(world, window, gamma, after=None):
    """Returns the window's rows with the row after it, and sequences of drafts."""
    text = world.text + ids(window)
    scoring = world.target.score(text, last=len(window))
    return world.all(
        scoring, world.draft.draft_sequences(text if after is None else after, gamma)
    )


def duo_step_as_in_the_lesson(world, window, gamma):
    rows, sequences = ask_for_sequences(world, window, gamma)
    tested = match(world, window, rows)
    world.commit(tested.tokens)
    if len(tested.accepted) == len(window):
        for sequence in sequences:
            if ids(sequence[:1]) == tested.extra:
                return sequence[1:]
    return ()


def duo_step_by_a_dict(world, window, gamma):
    rows, sequences = ask_for_sequences(world, window, gamma)
    tested = match(world, window, rows)
    world.commit(tested.tokens)
    if len(tested.accepted) < len(window):
        return ()
    following = {ids(sequence[:1]): sequence[1:] for sequence in sequences}
    return following.get(tested.extra, ())


def duo_step_with_lists(world, window, gamma):
    window = list(window)
    rows, sequences = ask_for_sequences(world, tuple(window), gamma)
    tested = match(world, window, rows)
    for token in tested.tokens:
        if world.going:
            world.commit([token])
    if ids(window) != tested.accepted:
        return []
    sequences = [list(each) for each in sequences if ids(each[:1]) == tested.extra]
    return sequences[0][1:] if sequences else []


def duo_step_that_waits_twice(world, window, gamma):
    """Submits both operations before it waits for either."""
    text = world.text + ids(window)
    drafting = world.draft.draft_sequences(text, gamma)
    scoring = world.target.score(text, last=len(window))
    rows, sequences = world.wait(scoring), world.wait(drafting)
    tested = match(world, window, rows)
    world.commit(tested.tokens)
    following = ()
    for place, first in enumerate(sequence[0].token for sequence in sequences):
        if len(tested.accepted) == len(window) and (first,) == tested.extra:
            following = sequences[place][1:]
    return following


def last_draft_forgotten(world, window, gamma):
    return duo_step_as_in_the_lesson(world, window, gamma)[:-1]


def window_kept_after_a_rejection(world, window, gamma):
    rows, sequences = ask_for_sequences(world, window, gamma)
    tested = match(world, window, rows)
    world.commit(tested.tokens)
    for sequence in sequences:
        is_whole = len(tested.accepted) == len(window)
        if is_whole and ids(sequence[:1]) == tested.extra:
            return sequence[1:]
    return window[len(tested.tokens) :]


def only_the_likeliest_sequence(world, window, gamma):
    rows, sequences = ask_for_sequences(world, window, gamma)
    tested = match(world, window, rows)
    world.commit(tested.tokens)
    likeliest = sequences[0]
    is_whole = len(tested.accepted) == len(window)
    return likeliest[1:2] if is_whole and ids(likeliest[:1]) == tested.extra else ()


RIGHT = {
    "duo_round": [duo_as_in_the_lesson, duo_by_recursion, duo_by_algebra],
    "sequences": [
        sequences_among_the_divisors,
        sequences_by_recursion,
        sequences_by_numpy,
    ],
    "duodecoding": [duo_step_by_a_dict, duo_step_with_lists, duo_step_that_waits_twice],
}
WRONG = {
    "duo_round": [first_pass_on_top, longer_sequences, target_for_each_sequence],
    "sequences": [as_likely_as_theta, mean_chance_in_theta, budget_alone],
    "duodecoding": [
        last_draft_forgotten,
        window_kept_after_a_rejection,
        only_the_likeliest_sequence,
    ],
}
