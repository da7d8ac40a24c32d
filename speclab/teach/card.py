"""The answer to an exercise: a card that a notebook shows, and the same in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

STYLE = (
    "border-left: 5px solid {colour}; padding: 4px 14px; margin: 6px 0; "
    "max-width: 46em; line-height: 1.5; font-size: 15px"
)
RIGHT, WRONG, NEUTRAL = "#1c9a5b", "#c4561a", "#7a7f87"


@dataclass(frozen=True)
class Card:
    """What ``check_...`` found.

    is_right    whether the exercise is solved
    verdict     one sentence: right, or what differs, with numbers
    cause       the name of the likely mistake; empty where none is known
    details     further sentences: the likely cause, what to try next
    is_almost   whether what is wrong happens with probability 0
    is_begun    whether there is anything to judge yet
    """

    is_right: bool
    verdict: str
    cause: str = ""
    details: tuple[str, ...] = ()
    is_almost: bool = False
    is_begun: bool = True

    @property
    def heading(self) -> str:
        """A sign and a word, so that the answer is not in the colour alone."""
        if not self.is_begun:
            return "○ Not begun."
        if self.is_almost:
            return "✓ Almost right."
        return "✓ Right." if self.is_right else "✗ Not yet."

    def __repr__(self) -> str:
        return "\n".join([f"{self.heading} {self.verdict}", *self.details])

    def _repr_html_(self) -> str:
        colour = RIGHT if self.is_right else WRONG
        if not self.is_begun:
            colour = NEUTRAL
        paragraphs = [f"<b>{self.heading}</b> {escape(self.verdict)}"]
        paragraphs += [escape(detail) for detail in self.details]
        body = "<br>".join(paragraphs)
        style = STYLE.format(colour=colour)
        return f'<div role="status" style="{style}">{body}</div>'


@dataclass(frozen=True, repr=False)
class RewardedCard(Card):
    """The card of a solution that is shown at work.

    ``reward`` gives what a notebook displays below the card. Where nothing is
    displayed, it is not called.
    """

    reward: Callable[[], object] = lambda: None

    def _ipython_display_(self) -> None:
        from IPython.display import display

        card = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        display(card, raw=True)  # type: ignore[no-untyped-call]
        display(self.reward())  # type: ignore[no-untyped-call]


def with_reward(card: Card, reward: Callable[[], object]) -> Card:
    """The same card; what ``reward`` gives is shown below it."""
    return RewardedCard(**vars(card), reward=reward)


def right_card(verdict: str, *details: str) -> Card:
    """The card of a solved exercise."""
    return Card(True, verdict, details=details)


def not_begun(
    next_step: str = "Write your function, and run this cell again.",
) -> Card:
    """The card of an exercise at which nothing has been written yet."""
    return Card(False, next_step, is_begun=False)


def almost_right_card(verdict: str, *details: str, cause: str = "") -> Card:
    """The card of a solution that errs with probability 0, which counts as solved."""
    return Card(True, verdict, cause, details, is_almost=True)


def wrong_card(verdict: str, *details: str, cause: str = "") -> Card:
    """The card of one that is not solved yet."""
    return Card(False, verdict, cause, details)
