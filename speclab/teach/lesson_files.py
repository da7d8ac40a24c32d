"""Loads the texts of exercises, guesses and quizzes from ``data/lessons``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from speclab.check.mistakes import Mistake
from speclib.data.toml_files import read_toml
from speclib.errors import unknown_name
from speclib.paths import DATA

FOLDER = DATA / "lessons"


class Choice(BaseModel):
    """A possible answer, and why it is right or wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    text: str
    why: str
    is_right: bool = False


class Quiz(BaseModel):
    """A question with its choices, exactly one of which is right."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    question: str
    choices: tuple[Choice, ...]

    @model_validator(mode="after")
    def _has_one_right_choice(self) -> Quiz:
        right = [choice for choice in self.choices if choice.is_right]
        if len(right) != 1:
            raise ValueError(f"{len(right)} choices are right: mark exactly one")
        return self


class Guess(BaseModel):
    """A question for a number from ``low`` to ``high``, its answer and the reason.

    ``step``: the slider's step; None for a hundredth of its range.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    question: str
    answer: float
    low: float
    high: float
    why: str
    step: float | None = None

    @model_validator(mode="after")
    def _can_be_answered(self) -> Guess:
        if not self.low <= self.answer <= self.high:
            raise ValueError(f"the answer {self.answer} is not on the slider")
        return self


@cache
def load_guesses() -> dict[str, Guess]:
    """All guesses, by name."""
    guesses = read_toml(FOLDER, "guesses", "the guesses are missing")
    return {name: Guess.model_validate(guess) for name, guess in guesses.items()}


def find_guess(name: str) -> Guess:
    """The guess ``name``. Raises SpeclibError, which lists the known names."""
    guesses = load_guesses()
    if name not in guesses:
        raise unknown_name(f"no guess {name!r}", name, guesses)
    return guesses[name]


@cache
def load_quizzes() -> dict[str, Quiz]:
    """All quizzes, by name."""
    quizzes = read_toml(FOLDER, "quizzes", "the quizzes are missing")
    return {name: Quiz.model_validate(quiz) for name, quiz in quizzes.items()}


def find_quiz(name: str) -> Quiz:
    """The quiz ``name``. Raises SpeclibError, which lists the known names."""
    quizzes = load_quizzes()
    if name not in quizzes:
        raise unknown_name(f"no quiz {name!r}", name, quizzes)
    return quizzes[name]


@cache
def load_hints() -> dict[str, list[str]]:
    """The hints for each exercise, from a nudge to nearly the answer."""
    return read_toml(FOLDER, "hints", "the hints are missing")


@cache
def load_questions() -> dict[str, dict[str, str]]:
    """The questions on cards, by exercise and mistake."""
    return read_toml(FOLDER, "mistakes", "the questions on mistakes are missing")


def named_mistakes(
    exercise: str, functions: Iterable[tuple[str, Callable[..., Any]]]
) -> tuple[Mistake, ...]:
    """The mistakes that these functions make, with the questions on their cards."""
    questions = load_questions()[exercise]
    mistakes = []
    for name, function in functions:
        mistakes.append(Mistake(name, questions[name], function))
    return tuple(mistakes)
