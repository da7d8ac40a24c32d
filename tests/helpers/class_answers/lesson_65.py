"""Answers to the exercises on several requests at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


# -- the time of a round ---------------------------------------------------------------
def round_as_in_the_lesson(batch, gamma, fixed, per_token, draft):
    fed = batch * (gamma + 1)
    return gamma * draft + fixed + per_token * fed


def round_by_numpy(batch, gamma, fixed, per_token, draft):
    return np.dot([gamma, 1, batch * gamma + batch], [draft, fixed, per_token])


def round_as_plain_and_more(batch, gamma, fixed, per_token, draft):
    plain = fixed + per_token * batch
    return plain + gamma * (draft + per_token * batch)


def one_draft_pass(batch, gamma, fixed, per_token, draft):
    return draft + fixed + per_token * batch * (gamma + 1)


def side_by_side(batch, gamma, fixed, per_token, draft):
    return max(gamma * draft, fixed + per_token * batch * (gamma + 1))


def batch_ignored(batch, gamma, fixed, per_token, draft):
    return gamma * draft + fixed + per_token * (gamma + 1)


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


def rows_for_nothing(tokens, rows, fixed, per_token, draft):
    return (fixed * (tokens - 1) - draft) / per_token


def upside_down(tokens, rows, fixed, per_token, draft):
    return per_token * (rows - tokens) / (fixed * (tokens - 1) - draft)


RIGHT = {
    "batch_round": [round_as_in_the_lesson, round_by_numpy, round_as_plain_and_more],
    "batch_limit": [
        limit_as_in_the_lesson,
        limit_by_a_linear_equation,
        limit_by_fractions,
    ],
}
WRONG = {
    "batch_round": [one_draft_pass, side_by_side, batch_ignored],
    "batch_limit": [drafting_added, rows_for_nothing, upside_down],
}
