"""Exercises: right solutions are right, and known mistakes are named."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.class_answers import named_answers

from speclab import teach
from speclab.check import candidate_mistakes, line_mistakes
from speclab.check.coin import draw
from speclab.teach import formulas, methods_to_write
from speclab.teach.card import Heading
from speclab.teach.formula import Formula
from speclab.teach.lesson_files import load_questions
from speclab.teach.tests_to_write import BLOCKS
from speclib import SpeclibError
from speclib.methods import METHODS
from speclib.methods.pearl import pearl_without_pre_verify

# The mistakes that the lessons promise to name.
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
    "verify": (teach.check_verify, line_mistakes.MISTAKES),
    "pick": (teach.check_pick, candidate_mistakes.MISTAKES),
}
for exercise in vars(formulas).values():
    if isinstance(exercise, Formula):
        CHECKS[exercise.name] = (exercise, exercise.mistakes)
for name, exercise in methods_to_write.EXERCISES.items():
    CHECKS[name] = (exercise.check, exercise.mistakes)


def every_mistake():
    """Each check with each mistake that it knows.

    Mistakes that an answer of a class makes (``test_class_answers``) are left to the
    thorough tests.
    """
    for exercise, (check, mistakes) in CHECKS.items():
        made_by_a_class = named_answers().get(exercise, {})
        for mistake in mistakes:
            marks = [pytest.mark.thorough] if mistake.name in made_by_a_class else []
            label = f"{exercise}: {mistake.name}"
            yield pytest.param(check, mistake, id=label, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("check, mistake", list(every_mistake()))
def test_a_named_mistake_is_called_by_its_name(check, mistake):
    card = check(mistake.solution)
    assert card.heading is Heading.ALMOST or not card.is_right
    assert card.cause == mistake.name
    assert mistake.question in card.details


def test_every_promised_mistake_has_a_name():
    known = {mistake.name for _, mistakes in CHECKS.values() for mistake in mistakes}
    assert known >= PROMISED


def test_every_question_of_a_card_belongs_to_a_mistake_and_none_is_missing():
    """The mistakes with drafts on a line and with candidates are in speclab.check."""
    names = {"block": set(BLOCKS)}
    for exercise, (_, mistakes) in CHECKS.items():
        names[exercise] = {mistake.name for mistake in mistakes}
    for exercise, questions in load_questions().items():
        assert set(questions) == names[exercise], exercise


# -- right solutions -------------------------------------------------------------------
def verify(drafted, q, p, coin):
    for i, token in enumerate(drafted):
        if p[i][token] <= coin() * q[i][token]:
            rest = np.clip(p[i] - q[i], 0, None)
            return drafted[:i] + [draw(rest / rest.sum(), coin())]
    return drafted + [draw(p[-1], coin())]


@pytest.mark.parametrize(
    "check, solution",
    [
        (teach.check_verify, verify),
        (teach.check_method, METHODS["speculative"]),
        (teach.check_method, METHODS["pearl"]),  # lossless, and faster than asked for
        (lambda method: teach.check_method(method, "dsi"), METHODS["dsi"]),
        (
            lambda method: teach.check_method(method, "duodecoding"),
            METHODS["duodecoding"],
        ),
    ],
)
def test_a_right_solution_is_right(check, solution):
    """tests/helpers/class_answers has three more for every exercise."""
    card = check(solution)
    assert card.is_right, card
    assert repr(card).startswith("✓ Right.")


# -- what DSI commits ------------------------------------------------------------------


@pytest.mark.parametrize(
    "commit, said",
    [
        (lambda world, known_rows, draft: [].append(draft), "returns None: return the"),
        (lambda world, known_rows, draft: (3,), "returns (3,): return the remaining"),
        (lambda world, known_rows, draft: draft[0].toke, "AttributeError in your line"),
    ],
)
def test_what_is_no_draft_is_named(commit, said):
    assert said in teach.check_dsi(commit).verdict


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
    assert repr(card).startswith("✗ Correct, but too slow. On the virtual clock")
    assert ": 1.00x over plain decoding. Reference implementation: " in card.verdict
    assert "Your method is lossless" in repr(card)


def test_pearl_without_a_half_is_lossless_and_called_slow():
    card = teach.check_method(pearl_without_pre_verify, like="pearl")
    assert card.cause == "slower than it could be"


def test_the_counterexample_of_candidates_that_are_ignored_is_arithmetic():
    """q = (0.5, 0.5), p = (0.8, 0.2), one candidate. Drawn independently, the token is
    the candidate in half of all cases. Tested, it is kept with 0.5 + 0.5 * 0.4 = 0.7.
    """
    card = teach.check_pick(lambda candidates, q, p, coin: draw(p, coin()))
    assert "a candidate with probability 0.5000; 0.7000 is possible" in card.verdict


# -- the answer is a card for every function -------------------------------------------
def stops_early(world, gamma):
    world.commit((1,))


def fails(*_):
    values = []
    return values[3]


@pytest.mark.parametrize(
    "check", [teach.check_residual, teach.check_verify, teach.check_method]
)
@pytest.mark.parametrize(
    "function, said",
    [(fails, "IndexError in your line `return values[3]`"), (lambda: 1, "TypeError")],
)
def test_an_error_is_a_card_that_names_the_line(check, function, said):
    card = check(function)
    assert not card.is_right
    assert said in card.verdict


@pytest.mark.parametrize(
    "committed, said",
    [
        ([], "commits no token"),
        ([7], "commits 7, which is no token"),
        ("ab", "return a list of tokens"),
    ],
)
def test_what_is_no_list_of_tokens_is_named(committed, said):
    assert said in teach.check_verify(lambda *_: committed).verdict


@pytest.mark.parametrize(
    "given, said", [([0], "return one"), (7, "7, which is no token"), (0.5, "0.5")]
)
def test_what_is_no_token_is_named(given, said):
    assert said in teach.check_pick(lambda *_: given).verdict


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
    with pytest.raises(
        SpeclibError, match="perl.*known: speculative, pearl, dsi, duodecoding"
    ):
        teach.check_method(METHODS["pearl"], like="perl")


def test_a_card_escapes_what_a_student_wrote():
    card = teach.check_residual(lambda p, q: "<script>")
    assert "<script>" not in card._repr_html_()
    assert 'role="status"' in card._repr_html_()
