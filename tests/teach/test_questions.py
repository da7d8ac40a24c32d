"""Hints, guesses, quizzes, and what is kept of them."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from helpers import late

import speclib
from speclab import accept_bars, teach
from speclab.check.line_mistakes import verify
from speclab.teach.bugs import HIDDEN
from speclab.teach.catalogue import all_exercises
from speclab.teach.lesson_files import (
    load_guesses,
    load_hints,
    load_order,
    load_quizzes,
)
from speclab.theory import closed_forms
from speclab.theory.hardware import load_hardware
from speclab.views.notebook_files import read_notebook
from speclib import SpeclibError, paths

ROOT = Path(__file__).resolve().parents[2]


def test_hints_lead_from_a_nudge_to_the_end_and_no_further():
    for exercise, hints in load_hints().items():
        for number, text in enumerate(hints, 1):
            shown = repr(teach.hint(exercise, number))
            assert shown == f"Hint {number} of {len(hints)}: {text}"
        with pytest.raises(SpeclibError, match=f"give 1 to {len(hints)}"):
            teach.hint(exercise, len(hints) + 1)


def test_hints_of_an_unknown_exercise_name_those_that_there_are():
    with pytest.raises(SpeclibError, match="no hints for 'verfy'.*mean 'verify'"):
        teach.hint("verfy")


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


LESSONS = sorted((paths.ROOT / "notebooks" / "learn").glob("*.ipynb"))
ONE_QUESTION = re.compile(r'teach\.(quiz|predict)\(\s*"([\w -]+)"')


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


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_what_lessons_store_of_questions_is_whole(path):
    for cell in late.nbformat.read(path, as_version=4).cells:
        question = ONE_QUESTION.match(cell.source)
        for output in cell.get("outputs", ()):
            text = output.get("data", {}).get("text/plain", "")
            assert not text.endswith("…"), cell.source
            if question is not None:
                html = output.data["text/html"]
                assert "<details>" in html
            if question is not None and question[1] == "quiz":
                assert text == repr(teach.quiz(question[2]))
                forms = teach.quiz(question[2])._repr_mimebundle_()
                assert html == forms["text/html"]


def test_the_first_answer_to_a_quiz_counts():
    right = [choice.is_right for choice in load_quizzes()["rejected"].choices].index(
        True
    )
    shown = teach.quiz("rejected")
    shown.choices.index = 1 - right
    shown.choices.index = right
    assert state_of("rejected") == "not at once"


def test_a_guess_is_kept_and_compared_only_when_it_is_made():
    shown = teach.predict("pearl-limit")
    assert shown.answer_shown.value == ""
    shown.slider.value = 3.0
    shown.button.click()
    assert "You guessed 3; it is 5. The draft model" in shown.answer_shown.value
    assert state_of("pearl-limit") == "3.00"


def test_an_unknown_guess_is_named_with_those_that_there_are():
    with pytest.raises(SpeclibError, match="no guess 'race-car'.*race"):
        teach.predict("race-car")


def test_every_guess_is_asked_in_a_lesson_and_its_answer_stands_in_none():
    sources = {}
    for path in sorted((ROOT / "notebooks" / "source").glob("*.ipynb")):
        sources[path.stem] = read_notebook(path).cells
    asked = []
    for cells in sources.values():
        for cell in cells:
            asked += re.findall(r'teach\.predict\("([\w-]+)"\)', cell.source)
            assert "answer=" not in cell.source
    assert sorted(asked) == sorted(load_guesses())


def test_answers_of_guesses_are_what_formulas_and_simulations_give():
    """Of those that can be computed: the others are arithmetic in their reasons."""
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
    far = speclib.Latency.ratio(5.0, 0.1).over_network(draft=0, target=0.02)
    what = dict(gamma=5, alpha=1.0, tokens=20, latency=far)
    commits = speclib.simulate("pearl", **what).trace.commits
    milliseconds = 1000 * (commits[2].end - commits[1].end)
    assert milliseconds == pytest.approx(guesses["round-over-a-network"])

    latency = "pearl/llama2-7-70"
    run = speclib.simulate("pearl", latency=latency, alpha=0.93, tokens=400)
    one_pass = speclib.load_latency(latency).target(1)
    gain = load_hardware(latency).plain_pass(one_pass).gain(4)
    second_number = run.stats.decode_speed * one_pass / gain
    assert guesses["same-devices"] == pytest.approx(second_number, abs=0.005)


def test_progress_counts_tries_and_a_solved_exercise_stays_solved():
    assert state_of("verify") == "not tried yet"
    teach.check_verify(lambda *_: [0])
    assert state_of("verify") == "not solved yet, 1 try"
    teach.check_verify(verify)
    teach.check_verify(lambda *_: [0])
    assert state_of("verify") == "solved, 3 tries"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"exercises": 3}'])
def test_a_damaged_record_counts_as_nothing_done(text):
    file = paths.CACHE / "lessons" / "record.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert state_of("verify") == "not tried yet"
    teach.check_verify(verify)
    assert state_of("verify") == "solved, 1 try"


# -- progress by lessons ---------------------------------------------------------------
def exercises_shown(**options) -> dict[str, list[str]]:
    """The exercises in the table of progress, by lesson."""
    table = teach.progress(**options)
    shown: dict[str, list[str]] = {}
    for row in table[table["what"] == "exercise"].itertuples():
        shown.setdefault(row.lesson, []).append(row.name)
    return shown


def test_the_order_of_exercises_is_that_of_the_lessons():
    order = {}
    for exercise in all_exercises():
        names = order.setdefault(exercise.lesson, [])
        if exercise.check:
            name = "speculative" if exercise.check == "method" else exercise.check
            names.append(name)
        elif "name of a bug" in exercise.judge.compares:
            names += [f"bug {letter}" for letter in HIDDEN]
    assert load_order() == order
    named = [name for names in order.values() for name in names]
    with_hints = [name for name in named if not name.startswith("bug ")]
    assert sorted(with_hints) == sorted(load_hints())


def test_progress_shows_the_lessons_that_were_begun_and_the_next_one():
    order = load_order()
    assert exercises_shown() == {"10": order["10"]}
    teach.check_verify(verify)
    teach.find_bug("D", "untested drafts")
    assert list(exercises_shown()) == ["10", "12", "20"]
    teach.check_servers(lambda draft, target, lookahead: 0)
    assert list(exercises_shown()) == ["10", "12", "30", "35"]
    assert state_of("bug D") == "solved, 1 try"
    assert state_of("bug E") == "not tried yet"


def test_progress_counts_what_it_does_not_show_and_says_how_to_see_it():
    order = load_order()
    every_exercise = sum(map(len, order.values()))
    last = teach.progress().iloc[-1]
    assert last["name"] == f"{every_exercise - len(order['10'])} more"
    table = eval(last["how it stands"], {"teach": teach})
    assert len(table) == every_exercise
    assert exercises_shown(all_lessons=True) == order


def state_of(name: str) -> str:
    """What the table of progress says of an exercise, quiz or guess."""
    table = teach.progress(all_lessons=True)
    (state,) = table[table["name"] == name]["how it stands"]
    return state
