"""Exercises: right solutions are right, and a named mistake is called by its name."""

from __future__ import annotations

import time

import numpy as np
import pytest

from speclib import SpeclibError, teach
from speclib.core.sampling import ids
from speclib.core.verification import verify as core_verify
from speclib.methods import METHODS
from speclib.methods.pearl import next_window, pearl_without_pre_verify
from speclib.teach import formulas, method_exercise, verify_exercise
from speclib.teach.coin import draw

# What the lessons promise to tell apart.
PROMISED = {
    "reused coin",
    "residual not normalised",
    "residual from p",
    "non-strict test",
    "row off by one",
    "bonus forgotten",
    "greedy q when sampling",
    "untested first draft",
    "uncommitted tokens counted",
}
CHECKS = {
    "acceptance": (teach.check_acceptance, formulas.ACCEPTANCE.mistakes),
    "residual": (teach.check_residual, formulas.RESIDUAL.mistakes),
    "expected tokens": (teach.check_expected_tokens, formulas.EXPECTED_TOKENS.mistakes),
    "samples": (teach.check_samples, formulas.SAMPLES.mistakes),
    "round": (teach.check_round, formulas.ROUND.mistakes),
    "speed": (teach.check_speed, formulas.SPEED.mistakes),
    "verify": (teach.check_verify, verify_exercise.MISTAKES),
    "speculative": (teach.check_method, method_exercise.SD.mistakes),
    "pearl": (
        lambda method: teach.check_method(method, like="pearl"),
        method_exercise.PEARL.mistakes,
    ),
}
CASES = [
    pytest.param(check, mistake, id=f"{exercise}: {mistake.name}")
    for exercise, (check, mistakes) in CHECKS.items()
    for mistake in mistakes
]


@pytest.mark.slow
@pytest.mark.parametrize("check, mistake", CASES)
def test_a_named_mistake_is_called_by_its_name(check, mistake):
    card = check(mistake.solution)
    assert not card.is_right
    assert card.cause == mistake.name
    assert mistake.question in card.details


def test_every_promised_mistake_is_in_the_catalogue():
    known = {mistake.name for _, mistakes in CHECKS.values() for mistake in mistakes}
    assert PROMISED <= known


# -- right solutions, each written in another way than ours ----------------------------
def acceptance(p, q, token):
    return 1.0 if p[token] >= q[token] else p[token] / q[token]


def residual(p, q):
    missing = [max(0.0, a - b) for a, b in zip(p, q, strict=True)]
    return [m / sum(missing) for m in missing]


def expected_tokens(alpha, gamma):
    return gamma + 1 if alpha == 1 else (1 - alpha ** (gamma + 1)) / (1 - alpha)


def speed(rounds, seconds):
    return sum(r[2] for r in rounds) / seconds


def round_of_pearl(gamma, draft, target):
    drafting = sum([draft] * gamma)
    return drafting if drafting > target else target


def verify(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if p[i][token] <= coin() * q[i][token]:
            rest = np.clip(p[i] - q[i], 0, None)
            return drafted[:i] + [draw(rest / rest.sum(), coin())]
    return drafted + [draw(p[-1], coin())]


@pytest.mark.parametrize(
    "check, solution",
    [
        (teach.check_acceptance, acceptance),
        (teach.check_residual, residual),
        (teach.check_expected_tokens, expected_tokens),
        (teach.check_speed, speed),
        (teach.check_round, round_of_pearl),
        (teach.check_samples, lambda p, found: p * (1 - p) * (2 / (found - p)) ** 2),
        (teach.check_verify, verify),
        (teach.check_method, METHODS["speculative"]),
        (teach.check_method, METHODS["pearl"]),  # lossless, and faster than asked for
        (lambda method: teach.check_method(method, "pearl"), METHODS["pearl"]),
    ],
)
def test_a_right_solution_is_right(check, solution):
    card = check(solution)
    assert card.is_right, card
    assert repr(card).startswith("✓ Right.")


# -- a round of PEARL ------------------------------------------------------------------
def pearl_step(world, window, gamma):
    text = world.text + ids(window)
    rows, drafted = world.all(
        world.target.score(text, last=len(window)), world.draft.propose(text, gamma)
    )
    verified = core_verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return next_window(window + drafted, verified)


def step_that_fails(world, window, gamma):
    return window[3]


def test_a_round_of_pearl_is_judged_as_the_whole_method():
    assert teach.check_pearl(pearl_step).is_right
    card = teach.check_pearl(step_that_fails)
    assert "IndexError in your line `return window[3]`" in card.verdict


# -- counterexamples are true ----------------------------------------------------------
def test_the_counterexample_of_a_replacement_from_p_is_arithmetic():
    """q = (0.5, 0.5), p = (0.8, 0.2). Token 0 is drafted in half of all cases, and
    kept. Token 1 is drafted in the other half, rejected with 1 - 0.2/0.5 = 0.6, and
    replaced by token 0 with 0.8: 0.5 + 0.5 * 0.6 * 0.8 = 0.74.
    """

    def from_p(drafted, q, p, coin):
        for place, token in enumerate(drafted):
            if not coin() < p[place][token] / q[place][token]:
                return [*drafted[:place], draw(p[place], coin())]
        return [*drafted, draw(p[-1], coin())]

    card = teach.check_verify(from_p)
    assert "the first token is 0 with probability 0.7400" in card.verdict
    assert "the target model says 0.8000" in card.verdict


def test_a_method_that_only_plain_decodes_is_lossless_and_called_slow():
    def plain(world, gamma):
        METHODS["autoregressive"](world)

    card = teach.check_method(plain)
    assert not card.is_right
    assert "Nothing is lost" in card.verdict and "1.00 times" in repr(card)


def test_pearl_without_a_half_is_lossless_and_called_slow():
    card = teach.check_method(pearl_without_pre_verify, like="pearl")
    assert card.cause == "slower than it could be"


# -- whatever a function does, the answer is a card ------------------------------------
def stops_early(world, gamma):
    world.commit((1,))


def gives_up(*_):
    return


def fails(*_):
    values = []
    return values[3]


def never_ends(*_):
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("check", [check for check, _ in CHECKS.values()], ids=CHECKS)
@pytest.mark.parametrize(
    "function, said",
    [(fails, "IndexError in your line `return values[3]`"), (lambda: 1, "TypeError")],
)
def test_an_error_is_a_card_that_names_the_line(check, function, said):
    card = check(function)
    assert not card.is_right and said in card.verdict


@pytest.mark.parametrize("check", [check for check, _ in CHECKS.values()], ids=CHECKS)
def test_a_function_that_gives_nothing_gets_a_card(check):
    assert not check(gives_up).is_right


@pytest.mark.parametrize("check", [teach.check_residual, teach.check_method])
def test_a_function_that_never_ends_is_stopped(check, monkeypatch):
    monkeypatch.setattr("speclib.teach.calls.SECONDS", 0.2)
    card = check(never_ends)
    assert "did not end within 0.2 s" in card.verdict


@pytest.mark.parametrize(
    "committed, said",
    [
        ([], "commits no token"),
        ([0, 0, 0, 0], "commits 4 tokens"),
        ([7], "commits 7, which is no token"),
        (3, "give a list of tokens"),
        ("ab", "give a list of tokens"),
        ([0.5], "give a list of tokens"),
    ],
)
def test_what_is_no_list_of_tokens_is_named(committed, said):
    assert said in teach.check_verify(lambda *_: committed).verdict


def test_a_method_that_stops_before_the_end_is_told_so():
    assert "ends before the text is complete" in teach.check_method(stops_early).verdict


def test_a_student_may_not_change_the_rows_of_the_next_call():
    def greedy_hands(drafted, q, p, coin):
        result = verify(drafted, q, p, coin)
        for row in (*q, *p):
            row[:] = 0
        return result

    assert teach.check_verify(greedy_hands).is_right


def test_an_unknown_exercise_is_named_with_those_that_there_are():
    with pytest.raises(SpeclibError, match="perl.*known: speculative, pearl"):
        teach.check_method(METHODS["pearl"], like="perl")


def test_a_card_escapes_what_a_student_wrote():
    card = teach.check_residual(lambda p, q: "<script>")
    assert "<script>" not in card._repr_html_()
    assert 'role="status"' in card._repr_html_()
