"""Scoring a text: what the target would write after its last tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from speclib.core.sampling import Tokens
from speclib.core.text import AnyText, first_tokens

from .model import Model, Stopped
from .operation import Finished, MakeDrafts, Operation, Raw, Recording, Request
from .payload import OwnEvent, Payload


@dataclass(frozen=True)
class Scored(Payload):
    """The event's tokens are those fed; the last ``tested`` are candidates."""

    tested: int = 0

    is_scoring: ClassVar[bool] = True

    @property
    def candidates(self) -> int:
        return self.tested


@dataclass(frozen=True)
class Score(Operation):
    """Give the distributions after text[:-last] ... text: rows [last + 1, V]."""

    candidates: int = 0

    name: ClassVar[str] = "score"
    payload_type: ClassVar = Scored
    gives_distributions: ClassVar[bool] = True

    @classmethod
    def example(cls, text: Tokens) -> Score:
        return cls(text, min(2, len(text) - 1))

    @property
    def last(self) -> int:
        return self.candidates

    @property
    def texts(self) -> tuple[AnyText, ...]:
        """What the rows follow, in their order."""
        first = len(self.text) - self.candidates
        ends = range(first, len(self.text) + 1)
        return tuple(first_tokens(self.text, end) for end in ends)

    def run(self, model: Model, request: Request) -> Raw | None:
        try:
            rows = model.rows(self.text, self.candidates, request.sampler)
        except Stopped:
            return None
        return Raw(None, rows)

    def result(
        self, raw: Raw, kept: int, fed: int, make_drafts: MakeDrafts
    ) -> Finished:
        return Finished(raw.rows, self.text[kept:], Scored(self.candidates))

    def unfinished(self) -> Payload:
        return Scored(self.candidates)

    def recorded(self, event: OwnEvent, recording: Recording) -> Raw:
        return Raw(None, recording.target_rows(self.texts, ()))

    def is_recorded(self, event: OwnEvent) -> bool:
        same_text = event.tokens == self.text[event.kept :]
        return same_text and event.payload.candidates == self.candidates
