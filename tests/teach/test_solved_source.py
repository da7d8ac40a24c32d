"""The package's own code is shown to whoever has solved the exercise."""

from __future__ import annotations

from inspect import getsource

from helpers.class_answers.lesson_20 import (
    new_drafts_tested_first,
    pearl_as_in_the_lesson,
)

from speclab import teach
from speclib.methods import METHODS
from speclib.methods.pearl import next_window


def shown():
    return teach.source_once_solved("pearl", METHODS["pearl"], next_window)


def test_before_an_exercise_is_solved_a_card_names_the_file():
    assert shown().heading == "○ Not begun."
    assert shown().verdict.endswith("It stands in speclib/methods/pearl.py.")
    teach.check_pearl(new_drafts_tested_first)
    assert "world.all(" not in repr(shown())


def test_once_it_is_solved_the_code_is_shown():
    teach.check_pearl(pearl_as_in_the_lesson)
    code = f"{getsource(METHODS['pearl'])}\n{getsource(next_window)}"
    assert repr(shown()) == code
