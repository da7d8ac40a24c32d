"""The card that answers an exercise, as HTML for a notebook and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import NamedTuple

STYLE = (
    "border-left: 5px solid {colour}; padding: 4px 14px; margin: 6px 0; "
    "max-width: 46em; line-height: 1.5; font-size: 15px"
)
RIGHT, WRONG, NEUTRAL = "#1c9a5b", "#c4561a", "#7a7f87"
BUTTON = (
    "display: inline-block; cursor: pointer; border: 1px solid currentColor; "
    "border-radius: 4px; padding: 0 10px; margin-top: 4px"
)


class Heading(StrEnum):
    """The first words of a card: a sign and words, readable without colour."""

    RIGHT = "✓ Right."
    ALMOST = "✓ Almost right."
    SLOW = "✗ Correct, but too slow."
    WRONG = "✗ Not yet."
    NOT_BEGUN = "○ Not begun."


class Fold(NamedTuple):
    """A line to click, and the HTML that a click reveals below it."""

    line: str
    below: str

    def html(self, style: str = "") -> str:
        """The fold as HTML, which needs no script and no kernel."""
        styled = f' style="{style}"' if style else ""
        summary = f"<summary{styled}>{escape(self.line)}</summary>"
        return f"<details>{summary}{self.below}</details>"


@dataclass(frozen=True)
class Card:
    """The result of ``check_...``.

    heading   whether the exercise is solved
    verdict   a sentence: praise, or the counterexample with numbers
    cause     the name of the likely mistake; empty if unknown
    details   more sentences, for example about the likely cause
    hints     from a nudge to nearly the answer, each behind a button
    """

    heading: Heading
    verdict: str
    cause: str = ""
    details: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether the exercise counts as solved."""
        return self.heading in (Heading.RIGHT, Heading.ALMOST)

    def __repr__(self) -> str:
        return "\n".join([f"{self.heading} {self.verdict}", *self.details])

    def _repr_html_(self) -> str:
        colour = RIGHT if self.is_right else WRONG
        if self.heading is Heading.NOT_BEGUN:
            colour = NEUTRAL
        paragraphs = [f"<b>{self.heading}</b> {escape(self.verdict)}"]
        paragraphs += [escape(detail) for detail in self.details]
        body = "<br>".join(paragraphs) + hints_html(self.hints)
        style = STYLE.format(colour=colour)
        return f'<div role="status" style="{style}">{body}</div>'


def hints_html(hints: Iterable[str]) -> str:
    """Hints behind buttons; opening one reveals the button for the next."""
    html = ""
    for number, hint in reversed(list(enumerate(hints, 1))):
        line = "Show a hint" if number == 1 else "Another hint"
        html = Fold(line, f"<p>{escape(hint)}</p>{html}").html(BUTTON)
    return html


@dataclass(frozen=True, repr=False)
class RewardedCard(Card):
    """The card of a solution, with a demonstration below it.

    ``reward`` returns the object to display below the card. It is called only when the
    card is displayed.
    """

    reward: Callable[[], object] = lambda: None

    def _ipython_display_(self) -> None:
        from IPython.display import display

        card = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        display(card, raw=True)  # type: ignore[no-untyped-call]
        display(self.reward())  # type: ignore[no-untyped-call]


def with_reward(card: Card, reward: Callable[[], object]) -> Card:
    """The same card, with the value of ``reward`` shown below it."""
    return RewardedCard(**vars(card), reward=reward)


def right_card(verdict: str, *details: str) -> Card:
    """The card of a solved exercise."""
    return Card(Heading.RIGHT, verdict, details=details)


def not_begun(
    next_step: str = "Write your function, and run this cell again.",
) -> Card:
    """The card of an exercise whose function is still empty."""
    return Card(Heading.NOT_BEGUN, next_step)


def wrong_card(verdict: str, *details: str, cause: str = "") -> Card:
    """The card of an exercise that is not solved yet."""
    return Card(Heading.WRONG, verdict, cause, details)
