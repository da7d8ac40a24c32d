"""Every exercise with a class's answers: right in any style, wrong, and junk."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.class_answers import named_answers, right_answers, wrong_answers
from helpers.class_answers.lesson_10 import bonus_from_the_residual
from helpers.class_answers.lesson_20 import ENDS_WITH

from speclab import teach
from speclab.check import calls
from speclab.teach import formulas
from speclab.teach.card import Card, Heading
from speclab.teach.formula import Formula
from speclab.teach.lesson_files import load_questions

Answer = Callable[..., Any]
CHECKS = [
    name.removeprefix("check_") for name in teach.__all__ if name.startswith("check_")
]
# One exercise for each way of judging.
KINDS = ("residual", "verify", "block", "pick", "pearl", "dsi", "duodecoding", "method")


def check(exercise: str, answer: Answer) -> Card:
    return getattr(teach, f"check_{exercise}")(answer)


def each_answer(answers: dict[str, list[Answer]]):
    """Each exercise with each of its answers."""
    return [
        pytest.param(exercise, answer, id=f"{exercise}: {answer.__name__}")
        for exercise, all_of_it in answers.items()
        for answer in all_of_it
    ]


def test_every_exercise_has_three_answers_of_both_kinds():
    for answers in (right_answers(), wrong_answers()):
        assert sorted(answers) == sorted(set(CHECKS))
        for exercise, all_of_it in answers.items():
            count = len(set(all_of_it))
            assert count >= 3, f"{exercise} has {count} answers of a kind, of three"


@pytest.mark.parametrize("exercise, answer", each_answer(right_answers()))
def test_a_right_answer_in_any_style_is_right(exercise, answer):
    card = check(exercise, answer)
    assert card.heading is Heading.RIGHT, card


@pytest.mark.parametrize("exercise, answer", each_answer(wrong_answers()))
def test_a_wrong_answer_without_a_name_is_wrong_all_the_same(exercise, answer):
    card = check(exercise, answer)
    assert not card.is_right
    named = load_questions().get(exercise, ())
    advice = f"it has the name {card.cause!r}: move it to NAMED of its lesson"
    assert card.cause not in named, f"{advice}\n{card}"


def each_named_answer():
    """Each exercise with each answer that makes a named mistake.

    Further answers that make the same mistake are left to the thorough tests.
    """
    for exercise, by_name in named_answers().items():
        for name, answers in by_name.items():
            for number, answer in enumerate(answers):
                label = f"{exercise}: {answer.__name__}"
                marks = [pytest.mark.thorough] if number > 0 else []
                yield pytest.param(exercise, answer, name, id=label, marks=marks)


@pytest.mark.parametrize("exercise, answer, name", list(each_named_answer()))
def test_a_mistake_with_a_name_gets_it_and_a_question(exercise, answer, name):
    card = check(exercise, answer)
    assert not card.is_right
    assert card.cause == name, card
    assert any("?" in detail for detail in card.details)


@pytest.mark.parametrize(
    "answer, said",
    [
        pytest.param(answer, said, id=answer.__name__)
        for said, answers in ENDS_WITH.items()
        for answer in answers
    ],
)
def test_a_round_of_pearl_that_ends_with_an_error_is_told_what_is_missing(answer, said):
    card = check("pearl", answer)
    assert not card.is_right
    assert said in card.verdict


# -- in which kind of thing an answer comes --------------------------------------------
FORMULAS = {
    formula.name: formula
    for formula in vars(formulas).values()
    if isinstance(formula, Formula)
}


def in_another_form(exercise: str, form: Callable[[Any], Any]) -> Answer:
    solution = FORMULAS[exercise].right
    return lambda *arguments: form(solution(*arguments))


def is_row(exercise: str) -> bool:
    """Whether the answer is several numbers."""
    formula = FORMULAS[exercise]
    return np.ndim(formula.right(*formula.cases[0])) > 0


NUMBERS = [name for name in FORMULAS if name != "verdict" and not is_row(name)]
SEVERAL_NUMBERS = [name for name in FORMULAS if is_row(name)]


@pytest.mark.parametrize("form", [tuple, list, np.array, iter, np.float32])
@pytest.mark.parametrize("exercise", SEVERAL_NUMBERS)
def test_numbers_may_come_in_any_kind_of_row(exercise, form):
    assert check(exercise, in_another_form(exercise, form)).is_right


@pytest.mark.parametrize(
    "form", [float, np.array, np.float32, lambda number: [number], Fraction]
)
@pytest.mark.parametrize("exercise", NUMBERS)
def test_a_number_may_come_in_any_kind_of_number(exercise, form):
    assert check(exercise, in_another_form(exercise, form)).is_right


@pytest.mark.parametrize("exercise", FORMULAS)
def test_a_number_as_a_text_is_no_number(exercise):
    def as_text(answer):
        return [str(each) for each in answer] if np.ndim(answer) else f"{answer} "

    assert not check(exercise, in_another_form(exercise, as_text)).is_right


# -- junk ------------------------------------------------------------------------------
class WithoutWords:
    """A value that fails whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError

    __len__ = __iter__ = __float__ = __index__ = __array__ = __repr__


def nothing(*arguments: Any) -> None:
    return None


def text(*arguments: Any) -> str:
    return "0.5"


def own_object(*arguments: Any) -> WithoutWords:
    return WithoutWords()


def no_arguments() -> float:
    return 0.5


def raises(*arguments: Any) -> None:
    raise KeyError("gamma")


def leaves(*arguments: Any) -> None:
    raise SystemExit


def recurses(*arguments: Any) -> Any:
    return recurses(*arguments)


def yields_and_raises(*arguments: Any) -> Any:
    yield 0
    raise ValueError("after the first")


JUNK = [
    nothing,
    text,
    own_object,
    no_arguments,
    raises,
    leaves,
    recurses,
    yields_and_raises,
    None,
    "speculative",
    7,
]


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("exercise", KINDS)
def test_whatever_is_handed_in_there_is_a_card(exercise, junk):
    card = check(exercise, junk)
    assert not card.is_right
    assert card.verdict
    assert card._repr_html_()


# -- what does not end -----------------------------------------------------------------
def never_ends(*arguments: Any) -> None:
    while True:
        pass


def catches_all_errors(*arguments: Any) -> None:
    while True:
        try:
            sum(arguments)
        except Exception:
            continue


def catches_everything(*arguments: Any) -> None:
    while True:
        try:
            len(arguments)
        except:  # noqa: E722
            continue


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(calls, "SECONDS", 0.03)
    monkeypatch.setattr(calls, "AGAIN", 0.03)


@pytest.mark.parametrize("exercise", KINDS)
def test_an_endless_loop_is_stopped(exercise, impatient):
    assert "did not end within 0.03 s" in check(exercise, never_ends).verdict


@pytest.mark.parametrize("exercise", ["residual", "verify", "method"])
@pytest.mark.parametrize("loop", [catches_all_errors, catches_everything])
def test_a_loop_that_catches_its_stop_is_stopped_again(exercise, loop, impatient):
    assert "did not end" in check(exercise, loop).verdict


def test_calls_inside_a_call_take_of_its_time(impatient):
    """A round of DSI that does nothing returns each time, but the loop never ends."""

    def many_calls():
        while True:
            calls.call_guarded(lambda: sum(range(1000)))

    with pytest.raises(calls.Failed, match="did not end"), calls.time_limit():
        calls.call_guarded(many_calls)


def test_an_endless_generator_is_cut():
    def yields_forever(*arguments):
        while True:
            yield 0

    assert not teach.check_residual(yields_forever).is_right
    assert "commits 10000 tokens" in teach.check_verify(yields_forever).verdict


def tosses_until_it_fits(drafted, q, p, coin):
    """Right, but endless if every outcome is enumerated."""
    for place, token in enumerate(drafted):
        if coin() < p[place][token] / q[place][token]:
            continue
        while True:
            drawn = teach.draw(p[place], coin())
            missing = max(0, p[place][drawn] - q[place][drawn])
            if coin() * p[place][drawn] < missing:
                return [*drafted[:place], drawn]
    return [*drafted, teach.draw(p[-1], coin())]


def test_a_loop_that_tosses_coins_until_something_comes_is_told_why_it_may_not():
    card = teach.check_verify(tosses_until_it_fits)
    assert "more than 32 coins" in card.verdict


def test_a_row_of_nan_is_named_and_is_not_taken_for_chance():
    """An earlier version claimed that it did something else each time."""
    card = check("verify", bonus_from_the_residual)
    assert "NaN" in card.verdict
    assert "in your line `return drafted + [draw(residual(" in card.verdict
    assert card.cause == ""


# -- cards that were found by these answers --------------------------------------------
def test_a_coin_among_the_tokens_is_named():
    for exercise, answer in (
        ("verify", lambda drafted, q, p, coin: [coin()]),
        ("pick", lambda candidates, q, p, coin: coin()),
    ):
        assert "the number of a coin is hidden" in check(exercise, answer).verdict


def test_drafts_that_are_committed_in_place_of_tokens_are_named():
    def commits_drafts(world, gamma):
        while world.going:
            world.commit(world.wait(world.draft.propose(world.text, gamma)))

    assert "`ids(drafts)`" in teach.check_method(commits_drafts).verdict


def test_a_mirrored_coin_is_almost_right_in_a_tree_too():
    """A candidate that the target never writes passes if the coin is exactly 0."""

    def mirrored(candidates, q, p, coin):
        for token, row in zip(candidates, q, strict=True):
            if not coin() > p[token] / row[token]:
                return token
            p = np.maximum(p - row, 0)
            p = p / p.sum()
        return teach.draw(p, coin())

    card = teach.check_pick(mirrored)
    assert card.heading == "✓ Almost right."
    assert "which has probability 0" in card.verdict
