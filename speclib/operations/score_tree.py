"""Scoring a tree of candidates in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from speclib.core.candidate_tree import depths, paths
from speclib.core.sampling import Tokens
from speclib.core.text import AnyText

from .model import Model, Stopped
from .operation import Finished, MakeDrafts, Operation, Raw, Recording, Request
from .payload import OwnEvent, Payload
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


@dataclass(frozen=True)
class ScoreTree(Operation):
    """Give the distributions after a text and after the path to each node of a tree.

    ``text`` ends with the tokens of the tree's nodes, in the order of ``parents`` (see
    ``core.candidate_tree``). Gives rows [len(parents) + 1, V], the first of them after
    the bare text.

    ``likeliest_count``: of so many of the last rows only the likeliest token is wanted;
    it stands in the trace, so that a replay can say it again.

    ``tested``: whether those rows also decide what passes. Along the text that was
    committed, a replay then says what was committed.
    """

    parents: tuple[int, ...]
    likeliest_count: int = 0
    tested: bool = False

    name: ClassVar[str] = "score_tree"
    payload_type: ClassVar = ScoredTree
    gives_distributions: ClassVar[bool] = True

    @classmethod
    def example(cls, text: Tokens) -> ScoreTree:
        return cls((*text, 1, 2, 1), parents=(-1, 0, -1), likeliest_count=1)

    @property
    def last(self) -> int:
        return len(self.parents)

    @property
    def texts(self) -> tuple[AnyText, ...]:
        """What the rows follow, in their order."""
        return paths(self.text, self.parents)

    def run(self, model: Model, request: Request) -> Raw | None:
        try:
            rows = model.tree(self.text, self.parents, request.sampler)
        except Stopped:
            return None
        last_rows = rows[len(rows) - self.likeliest_count :]
        likeliest = tuple(last_rows.argmax(-1).tolist())
        return Raw(likeliest, rows)

    def result(
        self, raw: Raw, kept: int, fed: int, make_drafts: MakeDrafts
    ) -> Finished:
        payload = ScoredTree(len(self.parents), self.parents, raw.small)
        return Finished(raw.rows, self.text[kept:], payload)

    def unfinished(self) -> Payload:
        return ScoredTree(len(self.parents), self.parents)

    def recorded(self, event: OwnEvent, recording: Recording) -> Raw:
        likeliest = event.payload.likeliest
        rows = recording.target_rows(self.texts, likeliest, self.tested)
        return Raw(likeliest, rows)

    def is_recorded(self, event: OwnEvent) -> bool:
        same_text = event.tokens == self.text[event.kept :]
        return same_text and event.payload.candidates == len(self.parents)
