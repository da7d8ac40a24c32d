"""Answers of a hostile class: wrong in one corner, or odd but right.

Each was judged wrongly once.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from speclab import teach
from speclab.check.coin import draw
from speclib.core.sampling import residual


# -- verify and pick, with a fault that begins late ------------------------------------
def verify_with(passes=None, most=None):
    """A right ``verify`` with one part done differently."""

    def verify(drafted, q, p, coin):
        for place, token in enumerate(drafted):
            limit = p[place][token] / q[place][token]
            if passes is not None:
                limit = passes(place, limit)
            if not coin() < limit:
                row = residual(p[place], q[place])
                return [*drafted[:place], draw(row, coin())][:most]
        return [*drafted, draw(p[-1], coin())][:most]

    return verify


def pick_with(updates=99, reuses_coin=False):
    """A ``pick`` that stops updating p too early, or draws last by an old coin."""

    def pick(candidates, q, p, coin):
        u = None
        for place, (token, row) in enumerate(zip(candidates, q, strict=True)):
            u = coin()
            if u < p[token] / row[token]:
                return token
            if place < updates:
                p = residual(p, row)
        return draw(p, u if reuses_coin else coin())

    return pick


# -- formulas with a fault in one corner -----------------------------------------------
def likely_sequences(first, limit, gamma):
    likely = max(1, sum(chance > limit for chance in first))
    while gamma % likely:
        likely -= 1
    return likely


def tokens_per_second(alpha, c, gamma):
    return sum(alpha**i for i in range(gamma + 1)) / (gamma / c + 1)


def best_gamma_up_to(longest):
    def best(alpha, c):
        lengths = range(1, longest + 1)
        return max(lengths, key=lambda gamma: tokens_per_second(alpha, c, gamma))

    return best


WRONG = {
    "acceptance, rejected where p is q": (
        teach.check_acceptance,
        lambda p, q, x: min(1.0, p[x] / q[x]) * (p[x] != q[x]),
    ),
    "residual, p where three are missing": (
        teach.check_residual,
        lambda p, q: residual(p, q) if sum(p > q) < 3 else p,
    ),
    "verify, the fourth untested": (
        teach.check_verify,
        verify_with(passes=lambda place, limit: 1.0 if place >= 3 else limit),
    ),
    "verify, at most four tokens": (teach.check_verify, verify_with(most=4)),
    "pick, two updates": (teach.check_pick, pick_with(updates=2)),
    "pick, last coin reused": (teach.check_pick, pick_with(reuses_coin=True)),
    "speed, equal rounds once": (
        teach.check_speed,
        lambda rounds, seconds: sum({r[2] for r in rounds}) / seconds,
    ),
    "servers, at most 8": (
        teach.check_servers,
        lambda draft, target, lookahead: min(
            8, math.ceil(target / (lookahead * draft))
        ),
    ),
    "dsi_seconds, whole drafts right": (
        teach.check_dsi_seconds,
        lambda tokens, alpha, draft, target: (
            int(alpha * (tokens - 1)) * (draft - target) + tokens * target
        ),
    ),
    "sequences, equal chances once": (
        teach.check_sequences,
        lambda first, second, gamma: likely_sequences(
            set(first), max(first) * second, gamma
        ),
    ),
    "best_gamma, up to 49": (teach.check_best_gamma, best_gamma_up_to(49)),
}


@pytest.mark.parametrize("check, answer", WRONG.values(), ids=WRONG)
def test_an_answer_that_is_wrong_in_one_corner_is_not_right(check, answer):
    assert not check(answer).is_right


# -- what ends oddly -------------------------------------------------------------------
class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError


def raises(error: BaseException):
    def answer(*arguments: Any) -> None:
        raise error

    return answer


@pytest.mark.parametrize("error", [Wordless(), GeneratorExit()])
def test_an_odd_error_is_a_card_that_names_it(error):
    card = teach.check_acceptance(raises(error))
    assert type(error).__name__ in card.verdict


def test_numbers_that_look_alike_are_shown_with_more_digits():
    card = teach.check_break_even(lambda c: 1 / c + 1e-5)
    assert "0.20001," in card.verdict
