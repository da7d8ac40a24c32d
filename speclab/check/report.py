"""The answer from ``check``, as numbers and as sentences."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import NamedTuple

HEADINGS = {True: "Lossless.", False: "Not lossless.", None: "Not judged."}
NOTHING_FOUND = "No error was found, by sampling."
NOTHING_YET = "No error was found, but not every outcome was enumerated."


class Rate(NamedTuple):
    """The mean yield of a pass over several cases, and the highest possible yield.

    value   the rule's mean yield
    unit    such as "tokens per pass"
    best    the highest possible mean yield, by kind of rule
    """

    value: float
    unit: str
    best: dict[str, float]

    def __str__(self) -> str:
        if not self.best:
            return f"{self.value:.4f} {self.unit}."
        possible = [f"{value:.4f} {kind}" for kind, value in self.best.items()]
        return f"{self.value:.4f} {self.unit}; possible: {', '.join(possible)}."


@dataclass(frozen=True)
class Checked:
    """Whether a rule or a method is lossless, and how we know.

    is_lossless          None if the rule could not be run; also if sampling or a
                         partial enumeration found no error, which proves nothing
    problem              the smallest text that shows an error, or why it was not run
    how                  "walked": every outcome was enumerated; "walked in part": as
                         many as time allowed; "sampled": it was run many times; or
                         "not run"
    scope                what was enumerated, or the number of runs
    largest_error        the largest error in the probability of any event, in any case;
                         for a sampled answer, the largest difference, noise included
    would_find           for a sampled answer, the error that it finds 95 times in 100
    mistake              the known mistake that behaves the same; "" if none does
    question             a hint at the mistake
    is_lossless_greedy   whether it is lossless with deterministic models
    rate                 tokens per pass, and the highest possible
    notes                further sentences
    seconds              duration of the check
    """

    is_lossless: bool | None
    problem: str = ""
    how: str = "walked"
    scope: str = ""
    largest_error: float = 0.0
    would_find: float | None = None
    mistake: str = ""
    question: str = ""
    is_lossless_greedy: bool | None = None
    rate: Rate | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.is_lossless is True

    @property
    def heading(self) -> str:
        """The verdict in a word or two."""
        if self.how == "sampled" and not self.problem:
            return NOTHING_FOUND
        if self.how == "walked in part" and not self.problem:
            return NOTHING_YET
        return HEADINGS[self.is_lossless]

    @property
    def sentences(self) -> list[str]:
        """The whole answer, the most important sentence first."""
        parts = [self.heading]
        if self.problem:
            parts.append(self.problem)
        if self.is_lossless is False and self.how == "sampled":
            parts.append(f"The largest difference is {self.largest_error:.2g}.")
        elif self.is_lossless is False and self.largest_error > 0:
            parts.append(
                f"The probability of some event is off by {self.largest_error:.2g}."
            )
        if self.mistake:
            parts.append(f"It behaves like a known mistake, {self.mistake!r}.")
        if self.question:
            parts.append(self.question)
        if self.is_lossless is False and self.is_lossless_greedy:
            parts.append("With deterministic models it is lossless.")
        if self.scope:
            parts.append(self.scope)
        if self.would_find is not None:
            parts.append(
                f"Of 100 such checks, 95 find an error of {self.would_find:.2g} in the "
                "probability of a token, or in the total probability of the tokens "
                "that the target finds likelier than the draft does."
            )
        if self.rate is not None:
            parts.append(str(self.rate))
        return [*parts, *self.notes]

    def __repr__(self) -> str:
        return "\n".join([*self.sentences, f"It took {self.seconds:.1f} s."])

    def _repr_html_(self) -> str:
        heading, *others = self.sentences
        body = "<br>".join(escape(sentence) for sentence in others)
        return f'<div role="status"><b>{escape(heading)}</b> {body}</div>'
