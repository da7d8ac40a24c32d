"""Guesses and quizzes in a notebook.

A saved notebook loses its widgets, and ipywidgets truncates their stored text after 110
characters. So a question is also stored as plain text, and as HTML whose answers unfold
without a script.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import ipywidgets as widgets

from speclib.arguments import checked

from .card import RIGHT, STYLE, WRONG, Fold
from .lesson_files import Choice, Guess, Quiz, find_guess, find_quiz

GUESS_COLOUR = "#0072B2"


# -- without widgets --------------------------------------------------------
def folded_html(question: str, folds: Iterable[Fold]) -> str:
    """A question and its folds as HTML without a script."""
    unfolding = "".join(fold.html() for fold in folds)
    body = f"<p><b>{escape(question)}</b></p>{unfolding}"
    return f'<div class="speclib-question">{body}</div>'


class Foldable:
    """A widget that a notebook also stores as HTML and as text.

    A subclass is a widget, and defines ``question``, ``folds()`` and a ``repr``.
    """

    model_id: str  # the notebook finds the widget by this id
    question: str

    def folds(self) -> list[Fold]:
        """The lines below the question."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """The three stored forms, by MIME type."""
        return {
            "text/plain": repr(self),
            "text/html": folded_html(self.question, self.folds()),
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            },
        }


# -- guesses ---------------------------------------------------------------------------
class GuessShown(Foldable, widgets.VBox):  # type: ignore[misc]  # untyped
    """A question with a slider; the answer is shown after a guess."""

    def __init__(self, guess: Guess):
        self.guess, self.question = guess, guess.question
        step = guess.step or (guess.high - guess.low) / 100
        self.slider = widgets.FloatSlider(
            min=guess.low,
            max=guess.high,
            step=step,
            readout_format=".0f" if step >= 1 else ".2f",
            value=(guess.low + guess.high) / 2,
            description="your guess",
            style={"description_width": "initial"},
            layout={"width": "360px"},
        )
        self.button = widgets.Button(description="This is my guess")
        self.button.on_click(self._compare)
        self.answer_shown = widgets.HTML()
        question = widgets.HTML(f"<b>{escape(guess.question)}</b>")
        row = widgets.Box([self.slider, self.button], layout={"flex_flow": "row wrap"})
        super().__init__([question, row, self.answer_shown])

    def _compare(self, _button: object) -> None:
        guessed = float(self.slider.value)
        self.answer_shown.value = _framed(escape(self.compared(guessed)), GUESS_COLOUR)

    def compared(self, guessed: float) -> str:
        """A sentence that compares a guess with the answer."""
        answer, why = self.guess.answer, self.guess.why
        return f"You guessed {guessed:.4g}; the answer is {answer:.4g}. {why}"

    def folds(self) -> list[Fold]:
        answer = f"The answer is {self.guess.answer:.4g}. {self.guess.why}"
        return [Fold("Make a guess, then click here", f"<p>{escape(answer)}</p>")]

    def __repr__(self) -> str:
        return f"A guess: {self.guess.question}"


@checked
def predict(name: str) -> GuessShown:
    """Asks for a guess, then compares it with the answer."""
    return GuessShown(find_guess(name))


# -- quizzes ---------------------------------------------------------------------------
class QuizShown(Foldable, widgets.VBox):  # type: ignore[misc]  # untyped
    """A question; a click on a choice explains why it is right or wrong."""

    def __init__(self, quiz: Quiz):
        self.quiz, self.question = quiz, quiz.question
        self.choices = widgets.RadioButtons(
            options=[choice.text for choice in quiz.choices],
            value=None,
            layout={"width": "auto"},
        )
        self.choices.observe(self._answer, "value")
        self.explanation = widgets.HTML()
        question = widgets.HTML(f"<b>{escape(quiz.question)}</b>")
        super().__init__([question, self.choices, self.explanation])

    def _answer(self, _change: object) -> None:
        if self.choices.index is None:
            return
        choice = self.quiz.choices[self.choices.index]
        words = f"<b>{sign_of(choice)}</b> {escape(choice.why)}"
        self.explanation.value = _framed(words, RIGHT if choice.is_right else WRONG)

    def folds(self) -> list[Fold]:
        folds = []
        for choice in self.quiz.choices:
            why = escape(f"{sign_of(choice)} {choice.why}")
            folds.append(Fold(choice.text, f"<p>{why}</p>"))
        return folds

    def __repr__(self) -> str:
        choices = [f"  - {choice.text}" for choice in self.quiz.choices]
        return "\n".join([self.quiz.question, *choices])


def sign_of(choice: Choice) -> str:
    """The sign and the word for a right or a wrong choice."""
    return "✓ Yes." if choice.is_right else "✗ No."


@checked
def quiz(name: str) -> QuizShown:
    """A lesson's multiple-choice question, with an explanation for every choice."""
    return QuizShown(find_quiz(name))


def _framed(html: str, colour: str) -> str:
    style = STYLE.format(colour=colour)
    return f'<div role="status" style="{style}">{html}</div>'
