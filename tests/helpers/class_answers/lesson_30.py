"""Answers to the exercises on DSI."""

from __future__ import annotations

import math

import numpy as np

from speclib.core.sampling import ids
from speclib.core.verification import match


# -- how many servers ------------------------------------------------------------------
def servers_one_by_one(draft, target, lookahead):
    servers = 1
    while servers * lookahead * draft < target:
        servers += 1
    return servers


def servers_by_recursion(draft, target, lookahead):
    between = lookahead * draft
    if target <= between:
        return 1
    return 1 + servers_by_recursion(draft, target - between, lookahead)


def servers_by_numpy(draft, target, lookahead):
    return np.ceil(np.divide(target, draft) / lookahead)


def at_least_two(draft, target, lookahead):
    return max(2, math.ceil(target / (lookahead * draft)))


def lookahead_added(draft, target, lookahead):
    return math.ceil(target / (draft + lookahead))


def drafting_on_top(draft, target, lookahead):
    return math.ceil((target + lookahead * draft) / (lookahead * draft))


# -- the time of a text ----------------------------------------------------------------
def seconds_by_recursion(tokens, alpha, draft, target):
    if tokens == 1:
        return target
    before = seconds_by_recursion(tokens - 1, alpha, draft, target)
    return before + target - alpha * (target - draft)


def seconds_as_a_product(tokens, alpha, draft, target):
    of_one = np.dot([alpha, 1 - alpha], [draft, target])
    return (tokens - 1) * of_one + target


def seconds_saved(tokens, alpha, draft, target):
    """Subtracts what right drafts save from plain decoding's time."""
    return tokens * target - alpha * (tokens - 1) * (target - draft)


def first_token_from_the_target(tokens, alpha, draft, target):
    others = tokens - 2
    return draft * alpha * others + target * (2 + (1 - alpha) * others)


def the_slower_of_two_sums(tokens, alpha, draft, target):
    wrong = (1 - alpha) * (tokens - 1)
    return max(draft * tokens, target * (wrong + 1))


def tokens_between_rejections(tokens, alpha, draft, target):
    return target + (tokens - 1) * (draft + (1 - alpha) * (target - draft) * alpha)


# -- what is committed -----------------------------------------------------------------
def commit_by_recursion(world, known_rows, draft):
    row = known_rows.get(world.text)
    if row is None or not world.going:
        return draft
    tested = match(world, draft[:1], [row])
    world.commit(tested.tokens)
    left = () if tested.extra else draft[1:]
    return commit_by_recursion(world, known_rows, left)


def commit_in_place(world, known_rows, draft):
    """Removes rows that have been used."""
    draft = list(draft)
    while world.going and world.text in known_rows:
        row = known_rows.pop(world.text)
        tested = match(world, draft[:1], [row])
        world.commit(tested.tokens)
        if tested.extra:
            draft.clear()
        else:
            del draft[0]
    return draft


def commit_all_at_once(world, known_rows, draft):
    """Tests all rows along the draft at once; then again, after a replacement."""
    while world.going and world.text in known_rows:
        rows = []
        for count in range(len(draft) + 1):
            text = world.text + ids(draft[:count])
            if text not in known_rows:
                break
            rows.append(known_rows[text])
        tested = match(world, draft, rows)
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[len(tested.accepted) :]
    return draft


def row_of_the_same_length(world, known_rows, draft):
    def row():
        for text in reversed(list(known_rows)):
            if len(text) == len(world.text):
                return known_rows[text]
        return None

    while world.going and row() is not None:
        tested = match(world, draft[:1], [row()])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def replaced_by_the_likeliest(world, known_rows, draft):
    while world.going and world.text in known_rows:
        row = known_rows[world.text]
        tested = match(world, draft[:1], [row])
        world.commit(tested.accepted or (int(np.argmax(row)),))
        draft = () if tested.extra else draft[1:]
    return draft


def row_after_the_draft(world, known_rows, draft):
    while world.going:
        row = known_rows.get(world.text + ids(draft[:1]))
        if row is None:
            break
        tested = match(world, draft[:1], [row])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def waits_for_two_drafts(world, known_rows, draft):
    while world.going and world.text in known_rows and len(draft) != 1:
        tested = match(world, draft[:1], [known_rows[world.text]])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def newest_row_for_all(world, known_rows, draft):
    while world.going and world.text in known_rows:
        tested = match(world, draft[:1], list(known_rows.values())[-1:])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


RIGHT = {
    "servers": [servers_one_by_one, servers_by_recursion, servers_by_numpy],
    "dsi_seconds": [seconds_by_recursion, seconds_as_a_product, seconds_saved],
    "dsi": [commit_by_recursion, commit_in_place, commit_all_at_once],
}
WRONG = {
    "servers": [at_least_two, lookahead_added, drafting_on_top],
    "dsi_seconds": [
        first_token_from_the_target,
        the_slower_of_two_sums,
        tokens_between_rejections,
    ],
    "dsi": [row_of_the_same_length, replaced_by_the_likeliest, newest_row_for_all],
}
NAMED = {
    "dsi": {
        "waiting for a later row or draft": [row_after_the_draft, waits_for_two_drafts]
    }
}
