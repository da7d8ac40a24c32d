"""Mistakes in a rule for several candidates at one position, beside the right rule."""

from __future__ import annotations

import numpy as np

from speclib.core.sampling import Row, residual

from .coin import NewCoin, draw
from .mistakes import Mistake


def pick(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Removal and renormalisation, as in ``verify_tree``."""
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p = residual(p, row)
    return draw(p, coin())


def _p_as_it_was(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Each candidate is tested with the whole of p."""
    left = p
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        left = residual(p, row)
    return draw(left, coin())


def _first_row(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Each candidate is taken for a draw from the first row."""
    for token in candidates:
        if coin() < p[token] / q[0][token]:
            return token
        p = residual(p, q[0])
    return draw(p, coin())


def _one_coin(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """All candidates share a coin."""
    u = coin()
    for token, row in zip(candidates, q, strict=True):
        if u < p[token] / row[token]:
            return token
        p = residual(p, row)
    return draw(p, coin())


def _replaced_from_p(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """Where all fail, the token is drawn from p as it was."""
    left = p
    for token, row in zip(candidates, q, strict=True):
        if coin() < left[token] / row[token]:
            return token
        left = residual(left, row)
    return draw(p, coin())


def _not_normalised(candidates: list[int], q: list[Row], p: Row, coin: NewCoin) -> int:
    """What is left of p is not divided by its sum."""
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p = np.maximum(p - row, 0)
    return draw(p, coin())


MISTAKES = (
    Mistake(
        "p not taken off",
        "The first candidate failed, so its row has had its share of p. What is left "
        "of p for the next candidate?",
        _p_as_it_was,
    ),
    Mistake(
        "first row for all",
        "The second candidate was not drawn from the first row: the first candidate "
        "had no chance any more.",
        _first_row,
    ),
    Mistake(
        "reused coin",
        "Do two decisions share a coin? One that rejected a candidate is known to be "
        "large.",
        _one_coin,
    ),
    Mistake(
        "residual from p",
        "Where all candidates fail, is the token drawn from all of p? Candidates then "
        "come too often.",
        _replaced_from_p,
    ),
    Mistake(
        "residual not normalised",
        "What is left of p after a rejection does not add up to 1: it must be divided "
        "by its sum.",
        _not_normalised,
    ),
    Mistake(
        "one candidate tested",
        "What are the other candidates for?",
        lambda candidates, q, p, coin: pick(candidates[:1], q[:1], p, coin),
    ),
    Mistake(
        "candidates ignored",
        "You draw from p and look at no candidate. The text is right, but how seldom "
        "is the token one of the candidates then?",
        lambda candidates, q, p, coin: draw(p, coin()),
    ),
)
