"""Scoring a text."""

from __future__ import annotations

from typing import NamedTuple

from .operation import Request, Stopped


class Score(NamedTuple):
    """The distributions after text[:-last] ... text; the result is rows [last + 1, V]."""

    text: tuple[int, ...]
    last: int = 0
    name = "score"

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """What the rows follow, in their order."""
        return tuple(
            self.text[:n] for n in range(len(self.text) - self.last, len(self.text) + 1)
        )

    def concerns(self, text) -> bool:
        return self.text[: len(text)] == text

    def run(self, model, request: Request):
        try:
            return model.rows(self.text, self.last, request.sampler)
        except Stopped:
            return None

    def result(self, value, kept: int, fed: int, drafted):
        return value, {"tokens": self.text[kept:]}
