"""What a hostile class handed in: answers wrong in one corner, or odd but right.

Each of them was judged wrongly once.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np
import pytest

from speclab import teach
from speclab.check.coin import draw
from speclib.core.sampling import ids, residual
from speclib.core.verification import verify as library_verify


# -- verify and pick, with a fault that begins late ------------------------------------
def verify_with(passes=None, replacement=None, most=None):
    """A right ``verify`` in which one part is done differently."""

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


def verify_in_single_precision(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        if coin() >= np.float32(p[place][token]) / np.float32(q[place][token]):
            return [*drafted[:place], draw(residual(p[place], q[place]), coin())]
    return [*drafted, draw(p[-1], coin())]


def pick_with(updates=99, tried=99, last_draw=draw, reuses_coin=False):
    """A right ``pick`` of which a part stops after so many candidates."""

    def pick(candidates, q, p, coin):
        u = None
        for place, (token, row) in enumerate(zip(candidates, q, strict=True)):
            if place == tried:
                break
            u = coin()
            if u < p[token] / row[token]:
                return token
            if place < updates:
                p = residual(p, row)
        return last_draw(p, u if reuses_coin else coin())

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


def surest_of_first_three(trips):
    before, theirs, after = min(trips[:3], key=lambda trip: trip[2] - trip[0])
    return theirs - (before + after) / 2, (after - before) / 2


def touching_is_no(low, high, least, most):
    if least <= low and high <= most:
        return "yes"
    return "no" if high < least or most <= low else "open"


def two_counts_to_the_last_rejection(passes):
    accepted = sum(own for own, _ in passes)
    last = max(place for place, (_, rejected) in enumerate(passes) if rejected)
    counted = sum(own for own, _ in passes[: last + 1])
    return accepted / len(passes), counted / sum(rejected for _, rejected in passes)


WRONG = {
    "acceptance, rejected where p is q": (
        teach.check_acceptance,
        lambda p, q, x: min(1.0, p[x] / q[x]) * (p[x] != q[x]),
    ),
    "residual, p where three are missing": (
        teach.check_residual,
        lambda p, q: residual(p, q) if sum(p > q) < 3 else p,
    ),
    "expected_tokens, at most 8 drafts": (
        teach.check_expected_tokens,
        lambda alpha, gamma: sum(alpha**i for i in range(min(gamma, 8) + 1)),
    ),
    "verify, the fourth untested": (
        teach.check_verify,
        verify_with(passes=lambda place, limit: 1.0 if place >= 3 else limit),
    ),
    "verify, rejected where p is q": (
        teach.check_verify,
        verify_with(passes=lambda place, limit: 0.0 if limit == 1 else limit),
    ),
    "verify, at most four tokens": (teach.check_verify, verify_with(most=4)),
    "pick, two updates": (teach.check_pick, pick_with(updates=2)),
    "pick, two tried": (teach.check_pick, pick_with(tried=2)),
    "pick, last coin reused": (teach.check_pick, pick_with(reuses_coin=True)),
    "pick, likeliest of what is left": (
        teach.check_pick,
        pick_with(last_draw=lambda row, u: int(np.argmax(row))),
    ),
    "round, whole passes": (
        teach.check_round,
        lambda gamma, draft, target: max(gamma, math.ceil(target / draft)) * draft,
    ),
    "speed, equal rounds once": (
        teach.check_speed,
        lambda rounds, seconds: sum({r[2] for r in rounds}) / seconds,
    ),
    "speed, an extra token in every round": (
        teach.check_speed,
        lambda rounds, seconds: (
            (sum(r[1] + 1 for r in rounds[:-1]) + rounds[-1][2]) / seconds
        ),
    ),
    "servers, rounded before the division": (
        teach.check_servers,
        lambda draft, target, lookahead: math.ceil(round(target / draft) / lookahead),
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
    "duo_round, parts of tokens": (
        teach.check_duo_round,
        lambda gamma, k, draft, target: max(draft * (1 + gamma - k), target),
    ),
    "sequences, the first taken for the likeliest": (
        teach.check_sequences,
        lambda first, second, gamma: likely_sequences(first, first[0] * second, gamma),
    ),
    "sequences, equal chances once": (
        teach.check_sequences,
        lambda first, second, gamma: likely_sequences(
            set(first), max(first) * second, gamma
        ),
    ),
    "sequences, as likely is enough": (
        teach.check_sequences,
        lambda first, second, gamma: likely_sequences(
            first, max(first) * second - 1e-12, gamma
        ),
    ),
    "fuzzy_pass, four devices": (
        teach.check_fuzzy_pass,
        lambda groups, attention, mlp: sum(
            attention * math.ceil(size / 4) + size * mlp for size in groups
        ),
    ),
    "easy_round, at most 5 levels": (
        teach.check_easy_round,
        lambda gamma, exact, fuzzy, target: exact + min(gamma - 1, 4) * fuzzy + target,
    ),
    "break_even, rounded": (teach.check_break_even, lambda c: round(1 / c, 2)),
    "best_gamma, up to 30": (teach.check_best_gamma, best_gamma_up_to(30)),
    "best_gamma, up to 49": (teach.check_best_gamma, best_gamma_up_to(49)),
    "best_gamma, whole c": (
        teach.check_best_gamma,
        lambda alpha, c: best_gamma_up_to(50)(alpha, int(c)),
    ),
    "verdict, touching is no": (teach.check_verdict, touching_is_no),
    "two_counts, to the last rejection": (
        teach.check_two_counts,
        two_counts_to_the_last_rejection,
    ),
    "network_round, one draft more after five": (
        teach.check_network_round,
        lambda gamma, draft, target, mine, theirs: (
            (gamma + (gamma > 5)) * draft + target + 2 * (mine + theirs)
        ),
    ),
    "network_gamma, rounded": (
        teach.check_network_gamma,
        lambda draft, target, mine, theirs: round(
            (target + 2 * theirs - 2 * mine) / draft
        ),
    ),
    "clock, first three trips": (teach.check_clock, surest_of_first_three),
}


@pytest.mark.parametrize("check, answer", WRONG.values(), ids=WRONG)
def test_an_answer_that_is_wrong_in_one_corner_is_not_right(check, answer):
    assert not check(answer).is_right


RIGHT = {
    "verify, single precision": (teach.check_verify, verify_in_single_precision),
    "best_gamma, all lengths": (teach.check_best_gamma, best_gamma_up_to(50)),
}


@pytest.mark.parametrize("check, answer", RIGHT.values(), ids=RIGHT)
def test_a_right_answer_in_another_style_is_right(check, answer):
    card = check(answer)
    assert card.is_right, card


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
    assert "0.20001;" in card.verdict


def commits_accepted_alone(world, gamma):
    for _ in count():
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(library_verify(world, drafts, rows).accepted)


@pytest.mark.slow
def test_a_loop_that_is_stopped_inside_a_device_is_told_that_it_never_ends(
    monkeypatch,
):
    monkeypatch.setattr("speclab.check.calls.SECONDS", 0.5)
    card = teach.check_method(commits_accepted_alone)
    assert "did not end within 0.5 s" in card.verdict
