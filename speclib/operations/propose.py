"""Drafting one sequence of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from speclib.core.certain_rows import stacked
from speclib.core.sampling import Row, Tokens, certain
from speclib.core.text import AnyText, begins_with

from .model import Model, Stopped
from .operation import Done, Finished, MakeDrafts, Operation, Raw, Recording, Request
from .payload import DraftPayload, OwnEvent


@dataclass(frozen=True)
class Propose(Operation):
    """Draft ``n`` tokens after ``text``. Gives Drafted tokens, each with its q.

    ``index`` tells drafters apart: each has coins of its own.

    ``confidence``: end sooner, after an end token or after a token that is less
    probable to the draft than this. Greedy, q is one-hot, so the probability is then
    the one at temperature 1.

    Stopped, it ends with the tokens it has.

    A draft with replicas on two devices writes the first half of the tokens, rounded
    up, on the one and the others on the other (PEARL, Appendix G).
    """

    n: int
    index: int = 0
    confidence: float | None = None

    name: ClassVar[str] = "propose"
    payload_type: ClassVar = DraftPayload
    gives_distributions: ClassVar[bool] = True

    @classmethod
    def example(cls, text: Tokens) -> Propose:
        return cls(text, n=3)

    @property
    def most_drafts(self) -> int:
        return self.n

    @property
    def is_empty(self) -> bool:
        return not self.n

    def within(self, tokens_left: int) -> Propose:
        if self.n <= tokens_left:
            return self
        return Propose(self.text, tokens_left, self.index, self.confidence)

    def concerns(self, text: AnyText) -> bool:
        """Whether it can still say what may follow ``text``."""
        is_same_way = begins_with(self.text, text) or begins_with(text, self.text)
        return is_same_way and len(self.text) + self.n > len(text)

    def run(self, model: Model, request: Request) -> Raw:
        text = self.text
        q_rows: list[Row] = []
        first_half = ceil(self.n / 2)

        for count in range(self.n):
            if count == first_half:
                model.go_to_last()
            try:
                q = model.rows(text, 0, request.sampler)[0]
            except Stopped:
                break
            token = request.coins.choose(q, len(text), "draft", self.index)
            text += (token,)
            q_rows.append(q)
            if self._ends_with(token, q, model, request):
                break
        model.go_to_first()

        rows = stacked(q_rows, model.vocab)
        return Raw(text[len(self.text) :], rows)

    def _ends_with(self, token: int, q: Row, model: Model, request: Request) -> bool:
        """Whether the draft is to stop after ``token``, being unsure of it."""
        if self.confidence is None:
            return False
        if token in request.eos:
            return True
        chances = model.chances() if request.sampler.greedy else q
        return bool(self.confidence > chances[token])

    def until(self, done: Done, share: float) -> Done:
        """The tokens whose passes were over; all passes are taken as equally long."""
        if done.raw is None:
            return Done(None, done.kept, 0)
        tokens, rows = done.raw
        written = min(len(tokens), int(len(tokens) * share + 1e-9))
        fed = done.fed - (len(tokens) - written) if written else 0
        return Done(Raw(tokens[:written], rows[:written]), done.kept, fed)

    def result(
        self, raw: Raw, kept: int, fed: int, make_drafts: MakeDrafts
    ) -> Finished:
        tokens, rows = raw
        return Finished(make_drafts(tokens, rows), tuple(tokens), DraftPayload())

    def recorded(self, event: OwnEvent, recording: Recording) -> Raw:
        return Raw(event.tokens, certain(event.tokens, recording.vocab))
