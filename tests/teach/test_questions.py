"""Hints, guesses and quizzes."""

from __future__ import annotations

import re
from html import unescape

import pytest

import speclib
from speclab import accept_bars, teach
from speclab.teach.lesson_files import load_guesses, load_hints, load_quizzes
from speclab.theory import closed_forms
from speclab.theory.hardware import load_hardware
from speclib import SpeclibError
from speclib.core.sampling import residual


def test_a_card_has_its_hints_behind_buttons_until_the_exercise_is_solved():
    wrong = teach.check_residual(lambda p, q: p)
    hints = load_hints()["residual"]
    shown = [unescape(each) for each in re.findall("<p>(.*?)</p>", wrong._repr_html_())]
    assert shown == hints
    assert wrong._repr_html_().count("<details><summary") == len(hints)
    assert not any(hint in repr(wrong) for hint in hints)
    assert "<details>" not in teach.check_residual(residual)._repr_html_()


@pytest.mark.parametrize("name", load_quizzes())
def test_every_choice_of_a_quiz_explains_itself(name):
    quiz = load_quizzes()[name]
    shown = teach.quiz(name)
    explanations = set()
    for number, choice in enumerate(quiz.choices):
        shown.choices.index = number
        words = shown.explanation.value
        assert ("✓ Yes." in words) == choice.is_right
        assert ("✗ No." in words) != choice.is_right
        explanations.add(words)
    assert len(explanations) == len(quiz.choices) >= 3
    assert quiz.question in repr(shown)


@pytest.mark.parametrize("name", load_quizzes())
def test_without_a_kernel_a_quiz_is_whole_and_each_choice_unfolds_its_reason(name):
    quiz = load_quizzes()[name]
    forms = teach.quiz(name)._repr_mimebundle_()
    assert forms["text/plain"].splitlines() == [
        quiz.question,
        *(f"  - {choice.text}" for choice in quiz.choices),
    ]
    folds = re.findall(
        r"<details><summary>(.*?)</summary><p>(.*?)</p></details>", forms["text/html"]
    )
    wanted = []
    for choice in quiz.choices:
        sign = "✓ Yes." if choice.is_right else "✗ No."
        wanted.append((choice.text, f"{sign} {choice.why}"))
    assert [(unescape(line), unescape(below)) for line, below in folds] == wanted
    assert "<script" not in forms["text/html"]


def test_a_guess_is_compared_only_when_it_is_made():
    shown = teach.predict("pearl-limit")
    assert shown.answer_shown.value == ""
    shown.slider.value = 3.0
    shown.button.click()
    assert "You guessed 3; the answer is 5. The draft" in shown.answer_shown.value


def test_an_unknown_guess_is_named_with_those_that_there_are():
    with pytest.raises(SpeclibError, match="no guess 'race-car'.*race"):
        teach.predict("race-car")


def test_answers_of_guesses_are_what_formulas_and_simulations_give():
    """Only guesses that can be computed; the others' reasons have the arithmetic."""
    guesses = {name: guess.answer for name, guess in load_guesses().items()}
    speed = closed_forms.sd_speed(guesses["race"] / 100, 4, 1 / 5, 1.0)
    assert speed == pytest.approx(1, abs=0.002)
    assert f"{guesses['kept-drafts']:.0f} are kept" in accept_bars().live.spoken
    tokens = closed_forms.sd_tokens(0.8, 4)
    assert guesses["tokens-of-a-round"] == pytest.approx(tokens, abs=0.005)
    assert closed_forms.pearl_speed(1.0, 5, 1 / 5, 1.0) == guesses["pearl-limit"]

    dsi = closed_forms.dsi_speed(0.8, 2, 1 / 5, 1.0, servers=3)
    assert guesses["dsi-in-a-long-text"] == pytest.approx(float(dsi), abs=0.005)
    pearl = closed_forms.pearl_speed(0.8, 5, 1 / 5, 1.0)
    best = closed_forms.sd_best(0.8, 1 / 5, 1.0)
    gain = pearl / closed_forms.sd_speed(0.8, best, 1 / 5, 1.0)
    assert guesses["pearl-over-speculative"] == pytest.approx(gain, abs=0.005)
    assert guesses["four-layers-at-once"] == pytest.approx(4 / 2.02, abs=0.005)
    assert 0.8 ** guesses["length-that-settles"] == pytest.approx(1 / 3, abs=0.005)

    latency = "pearl/llama2-7-70"
    run = speclib.simulate("pearl", latency=latency, alpha=0.93, tokens=400)
    one_pass = speclib.load_latency(latency).target(1)
    gain = load_hardware(latency).plain_pass(one_pass).gain(4)
    second_number = run.stats.decode_speed * one_pass / gain
    assert guesses["same-devices"] == pytest.approx(second_number, abs=0.005)
