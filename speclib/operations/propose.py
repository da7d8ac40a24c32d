"""Drafting one sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .operation import Request, Stopped


class Propose(NamedTuple):
    """Draft ``n`` tokens after ``text``; the result is (tokens, their q rows [n, V]).

    With a ``confidence`` drafting ends sooner: after an end token, or after a token less probable
    to the draft than that (greedy: than it was at temperature 1, since q is one-hot). Stopped, it
    ends with the tokens it has.
    """

    text: tuple[int, ...]
    n: int
    index: int = 0
    confidence: float | None = None
    name = "propose"

    def concerns(self, text) -> bool:
        """Whether it can still say what may follow ``text``."""
        same = self.text[: len(text)] == text[: len(self.text)]
        return same and len(self.text) + self.n > len(text)

    def run(self, model, request: Request):
        text, rows = list(self.text), []
        for _ in range(self.n):
            try:
                row = model.rows(text, 0, request.sampler)[0]
            except Stopped:
                break
            token = request.coins.choose(row, len(text), "draft", self.index)
            text.append(token)
            rows.append(row)
            if self.confidence is not None and (
                token in request.eos
                or self.confidence
                > (model.chances() if request.sampler.greedy else row)[token]
            ):
                break
        return tuple(text[len(self.text) :]), np.stack(rows) if rows else np.empty(
            (0, model.vocab)
        )

    def result(self, value, kept: int, fed: int, drafted):
        return drafted(*value), {"tokens": tuple(value[0])}
