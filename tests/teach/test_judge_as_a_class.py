"""A class's answers: right ones in other styles, wrong ones that look right.

Each was judged wrongly once. None is in the catalogue of mistakes word for word.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.class_answers.lesson_20 import speed_by_popping

from speclab import teach
from speclab.check import line_mistakes
from speclab.check.coin import draw
from speclab.teach.card import Heading
from speclib.core.sampling import ids
from speclib.core.sampling import residual as library_residual
from speclib.core.verification import match
from speclib.core.verification import verify as library_verify

# -- right, in another style -----------------------------------------------------------


def verify_by_logarithms(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        with np.errstate(divide="ignore"):
            limit = np.log(p[place][token]) - np.log(q[place][token])
        if not np.log(coin()) < limit:
            row = library_residual(p[place], q[place])
            return [*drafted[:place], draw(row, coin())]
    return [*drafted, draw(p[-1], coin())]


def verify_into_an_array(drafted, q, p, coin):
    committed = np.array([])
    for place, token in enumerate(drafted):
        if not coin() < p[place][token] / q[place][token]:
            row = library_residual(p[place], q[place])
            return np.append(committed, draw(row, coin()))
        committed = np.append(committed, token)
    return np.append(committed, draw(p[-1], coin()))


@pytest.mark.parametrize(
    "check, answer",
    [
        (teach.check_verify, verify_by_logarithms),
        (teach.check_verify, verify_into_an_array),
        (teach.check_acceptance, lambda p, q, x: np.minimum(1, p[[x]] / q[[x]])),
    ],
)
def test_a_right_answer_in_another_style_is_right(check, answer):
    card = check(answer)
    assert card.heading is Heading.RIGHT, card


def test_the_mirrored_test_of_a_coin_is_almost_right():
    """`u > p / q` differs only at a coin that equals the ratio, such as 0."""

    def mirrored(drafted, q, p, coin):
        for place, token in enumerate(drafted):
            if coin() > p[place][token] / q[place][token]:
                row = library_residual(p[place], q[place])
                return [*drafted[:place], draw(row, coin())]
        return [*drafted, draw(p[-1], coin())]

    card = teach.check_verify(mirrored)
    assert card.is_right
    assert card.heading == "✓ Almost right."
    assert "which has probability 0" in card.verdict


# -- wrong, though it looks right ------------------------------------------------------
def residual_relative_to_q(p, q):
    excess = [
        (a - b) / b if a > b and b else max(a - b, 0) for a, b in zip(p, q, strict=True)
    ]
    return [part / sum(excess) for part in excess]


def verify_with_q_of(place_of_q):
    def verify(drafted, q, p, coin):
        for place, token in enumerate(drafted):
            row = q[place_of_q(place, len(q))]
            if not coin() * row[token] < p[place][token]:
                missing = library_residual(p[place], row)
                return [*drafted[:place], draw(missing, coin())]
        return [*drafted, draw(p[-1], coin())]

    return verify


def verify_two_and_trust_the_rest(drafted, q, p, coin):
    for place, token in enumerate(drafted[:2]):
        if not coin() * q[place][token] < p[place][token]:
            missing = library_residual(p[place], q[place])
            return [*drafted[:place], draw(missing, coin())]
    return [*drafted, draw(p[-1], coin())]


def commit_while_there_is_a_draft(world, known_rows, draft):
    while draft and world.going and world.text in known_rows:
        tested = match(world, draft[:1], [known_rows[world.text]])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def pearl_that_trusts_late_drafts(world, window, gamma):
    """Only the first two drafts of a window are tested; the others are committed."""
    text = world.text + ids(window)
    rows, drafted = world.all(
        world.target.score(text, last=len(window)), world.draft.propose(text, gamma)
    )
    tested_first = (window + drafted)[: min(2, len(rows))]
    verified = library_verify(world, tested_first, rows[:2])
    trusted = window[2:]
    if not verified.extra:
        world.commit(verified.tokens + ids(trusted))
        return (window + drafted)[len(verified.accepted) + len(trusted) :]
    world.commit(verified.tokens)
    return ()


@pytest.mark.parametrize(
    "check, answer, cause",
    [
        (teach.check_residual, residual_relative_to_q, "excess relative to q"),
        (teach.check_verify, verify_two_and_trust_the_rest, "later drafts untested"),
        (
            teach.check_verify,
            verify_with_q_of(lambda i, n: min(i, 1)),
            "q of another place",
        ),
        (teach.check_dsi, commit_while_there_is_a_draft, "waiting for drafts"),
    ],
)
def test_a_wrong_answer_that_looks_right_is_wrong_and_named(check, answer, cause):
    card = check(answer)
    assert not card.is_right
    assert card.cause == cause


def test_a_lossy_pearl_is_not_called_lossless():
    card = teach.check_pearl(pearl_that_trusts_late_drafts)
    assert not card.is_right
    assert card.heading is Heading.WRONG
    assert "Your method is lossless" not in repr(card)


def test_a_right_answer_after_a_destructive_one_is_right_and_a_wrong_one_wrong():
    assert teach.check_speed(speed_by_popping).is_right
    assert not teach.check_speed(lambda rounds, seconds: 0.0).is_right
    card = teach.check_speed(
        lambda rounds, seconds: sum(r[2] for r in rounds) / seconds
    )
    assert card.is_right


def verify_but_for_one_round_in_a_hundred(drafted, q, p, coin):
    """Lossless: it throws its drafts away without looking at them."""
    if coin() < 0.01:
        return [draw(p[0], coin())]
    return line_mistakes.verify(drafted, q, p, coin)


def test_a_verify_that_wastes_one_round_in_a_hundred_is_slower_than_it_could_be():
    card = teach.check_verify(verify_but_for_one_round_in_a_hundred)
    assert repr(card).startswith("✗ Correct, but too slow. With q = ")


def verify_a_little_too_lenient(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        if not coin() * q[place][token] < p[place][token] + 0.002:
            row = library_residual(p[place], q[place])
            return [*drafted[:place], draw(row, coin())]
    return [*drafted, draw(p[-1], coin())]


def test_what_is_nearly_lossless_is_wrong():
    card = teach.check_verify(verify_a_little_too_lenient)
    assert not card.is_right
    assert "the target model says" in card.verdict


@pytest.mark.parametrize("too_many", [-2, 0.5])
def test_a_count_is_a_whole_number_at_most_one_away(too_many):
    """The four numbers of samples are 100, 177.8, 10,000 and 360,000."""

    def samples(p, found):
        return round(4 * p * (1 - p) / (found - p) ** 2) + too_many

    assert not teach.check_samples(samples).is_right


# -- causes by name --------------------------------------------------------------------
def verify_by_python(drafted, q, p, coin):
    for place, token in enumerate(drafted):
        if not random.random() * q[place][token] < p[place][token]:
            row = library_residual(p[place], q[place])
            return [*drafted[:place], draw(row, coin())]
    return [*drafted, draw(p[-1], coin())]


def pearl_by_python(world, window, gamma):
    text = world.text + ids(window)
    rows, drafted = world.all(
        world.target.score(text, last=len(window)), world.draft.propose(text, gamma)
    )
    token = random.choices(range(len(rows[0])), weights=rows[0])[0]
    world.commit((token,))
    return ()


@pytest.mark.parametrize(
    "check, answer",
    [
        (teach.check_verify, verify_by_python),
        (teach.check_pearl, pearl_by_python),
    ],
)
def test_own_randomness_is_named(check, answer):
    """The second run cannot plausibly draw the same at each of many positions."""
    card = check(answer)
    assert not card.is_right
    assert card.cause == "own randomness"
    assert "coin()" in repr(card)
    assert "probability" not in repr(card)  # the result of one run says nothing


def test_a_system_exit_is_a_card():
    def leaves(p, q):
        raise SystemExit("enough")

    assert "SystemExit in your line" in teach.check_residual(leaves).verdict


# -- before a student began ------------------------------------------------------------
def stub(*arguments): ...  # your code


CHECKS = [
    teach.check_residual,
    teach.check_verify,
    teach.check_pearl,
]


@pytest.mark.parametrize("check", CHECKS)
def test_an_untouched_function_is_no_try(check):
    card = check(stub)
    assert not card.is_right
    assert card.heading == "○ Not begun."


def test_a_function_that_gives_nothing_is_a_try():
    def gives_nothing(p, q):
        p - q

    card = teach.check_residual(gives_nothing)
    assert card.heading == "✗ Not yet."
    assert card.cause == "no return"
