"""Scoring a tree of candidates in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from speclib.core.candidate_tree import depths, paths
from speclib.core.sampling import Tokens

from .operation import Finished, MakeDrafts, Operation, Raw, Recording, Request, Stopped
from .payload import OwnEvent, Payload, Words
from .score import Scored


@dataclass(frozen=True)
class ScoredTree(Scored):
    """As ``Scored``, of a tree.

    ``parents``: see ``core.candidate_tree``. ``best``: what the target found likeliest
    after each of the last candidates, where a method asked for that.
    """

    parents: tuple[int, ...] = ()
    best: Tokens = ()

    @property
    def likeliest(self) -> Tokens:
        return self.best

    def is_line(self, tokens: Tokens) -> bool:
        return depths(self.parents) == tuple(range(len(self.parents)))

    def label(self, tested: Tokens, words: Words) -> str:
        """A tree that has several ways is no text: only their number fits."""
        if self.is_line(tested):
            return super().label(tested, words)
        return f"{len(tested)} candidates"


@dataclass(frozen=True)
class ScoreTree(Operation):
    """Give the distributions after a text and after the path to each node of a tree.

    ``text`` ends with the tokens of the tree's nodes, in the order of ``parents`` (see
    ``core.candidate_tree``). Gives rows [len(parents) + 1, V], the first of them after
    the bare text.

    ``looked``: of so many of the last rows only the likeliest token is wanted; it
    stands in the trace, so that a replay can say it again.
    """

    parents: tuple[int, ...]
    looked: int = 0

    name: ClassVar[str] = "score_tree"
    payload_type: ClassVar = ScoredTree

    @classmethod
    def example(cls, text: Tokens) -> ScoreTree:
        return cls((*text, 1, 2, 1), parents=(-1, 0, -1), looked=1)

    @property
    def last(self) -> int:
        return len(self.parents)

    @property
    def texts(self) -> tuple[Tokens, ...]:
        """What the rows follow, in their order."""
        return paths(self.text, self.parents)

    def run(self, model: Any, request: Request) -> Raw | None:
        """In one pass where the model can do that, else one path after the other."""
        try:
            if hasattr(model, "tree"):
                rows = model.tree(self.text, self.parents, request.sampler)
            else:
                rows_by_path = [
                    model.rows(text, 0, request.sampler) for text in self.texts
                ]
                rows = np.concatenate(rows_by_path)
        except Stopped:
            return None
        return Raw(None, rows)

    def result(
        self, raw: Raw, kept: int, fed: int, make_drafts: MakeDrafts
    ) -> Finished:
        looked_at = raw.rows[len(raw.rows) - self.looked :]
        likeliest = tuple(looked_at.argmax(-1).tolist())
        payload = ScoredTree(len(self.parents), self.parents, likeliest)
        return Finished(raw.rows, self.text[kept:], payload)

    def unfinished(self) -> Payload:
        return ScoredTree(len(self.parents), self.parents)

    def recorded(self, event: OwnEvent, recording: Recording) -> Raw:
        rows = recording.target_rows(self.texts, event.payload.likeliest)
        return Raw(None, rows)

    def is_recorded(self, event: OwnEvent) -> bool:
        same_text = event.tokens == self.text[event.kept :]
        return same_text and event.payload.candidates == len(self.parents)
