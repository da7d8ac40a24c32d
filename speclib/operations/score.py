"""Scoring a text, or a tree of candidates: what the target would write, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from speclib.core.candidate_tree import depths, paths
from speclib.core.features import Features
from speclib.core.sampling import Rows, Tokens
from speclib.core.text import AnyText, first_tokens

from .model import Model
from .operation import DecodingRun, Given, Operation, Output, RecordedRun, ToDrafts
from .payload import OwnEvent, Payload


# -- what a trace shows ----------------------------------------------------------------
@dataclass(frozen=True)
class Scored(Payload):
    """The event's tokens are those that were fed; the last ``tested`` are tested."""

    tested: int = 0

    is_scoring: ClassVar[bool] = True


@dataclass(frozen=True)
class ScoredTree(Scored):
    """Like ``Scored``, for a tree.

    ``parents``: see ``core.candidate_tree``. ``best``: the target's likeliest token
    after each of the last candidates, if a method asked for it.
    """

    parents: tuple[int, ...] = ()
    best: Tokens = ()

    @property
    def likeliest(self) -> Tokens:
        return self.best

    def is_line(self, tokens: Tokens) -> bool:
        return depths(self.parents) == tuple(range(len(self.parents)))


# -- operations ------------------------------------------------------------------------
@dataclass(frozen=True)
class TargetPass(Operation):
    """Compute rows [last + 1, V]: a distribution after each of ``texts``."""

    payload_type: ClassVar[type[Payload]] = Scored
    gives_distributions: ClassVar[bool] = True

    def is_recorded(self, event: OwnEvent) -> bool:
        same_text = event.tokens == self.text[event.kept :]
        return same_text and event.payload.tested == self.last


@dataclass(frozen=True)
class Score(TargetPass):
    """Compute the distributions after text[:-last] ... text: rows [last + 1, V]."""

    last: int = 0

    name: ClassVar[str] = "score"

    @property
    def texts(self) -> tuple[AnyText, ...]:
        first = len(self.text) - self.last
        ends = range(first, len(self.text) + 1)
        return tuple(first_tokens(self.text, end) for end in ends)

    def run(self, model: Model, run: DecodingRun) -> Output:
        return Output(None, model.rows(self.text, self.last, run.sampler))

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        return Given(output.rows, self.text[kept:], self.unfinished())

    def unfinished(self) -> Payload:
        return Scored(self.last)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        return Output(None, recording.target_rows(self.texts, ()))


@dataclass(frozen=True)
class ScoreTree(TargetPass):
    """Compute the distributions after a text and after the path to each tree node.

    ``text`` ends with the tokens of the tree's nodes, in the order of ``parents`` (see
    ``core.candidate_tree``). The result is rows [len(parents) + 1, V]; the first row
    follows the bare text.

    ``likeliest_count``: in how many of the last rows only the likeliest token matters.
    The trace records these tokens, so that a replay can repeat them.

    ``tested``: whether these rows also decide which tokens are accepted. If so, a
    replay repeats the committed tokens along the committed text.
    """

    parents: tuple[int, ...]
    likeliest_count: int = 0
    tested: bool = False

    name: ClassVar[str] = "score_tree"
    payload_type: ClassVar = ScoredTree

    @property
    def last(self) -> int:
        return len(self.parents)

    @property
    def texts(self) -> tuple[AnyText, ...]:
        return paths(self.text, self.parents)

    def run(self, model: Model, run: DecodingRun) -> Output:
        rows = model.tree(self.text, self.parents, run.sampler)
        last_rows = rows[len(rows) - self.likeliest_count :]
        likeliest = tuple(last_rows.argmax(-1).tolist())
        return Output(likeliest, rows)

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        payload = ScoredTree(len(self.parents), self.parents, output.small)
        return Given(output.rows, self.text[kept:], payload)

    def unfinished(self) -> Payload:
        return ScoredTree(len(self.parents), self.parents)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        likeliest = event.payload.likeliest
        rows = recording.target_rows(self.texts, likeliest, self.tested)
        return Output(likeliest, rows)


class RowsAndFeatures(NamedTuple):
    """The result of a target pass.

    ``features``: the features of all fed tokens; None if the model has none.
    """

    rows: Rows
    features: Features | None


@dataclass(frozen=True)
class ScoreTreeFeatures(ScoreTree):
    """Like ``ScoreTree``, with the features of all fed tokens in the result.

    The fed tokens are the text's last tokens, which were not cached, and then the
    tree's nodes in order.
    """

    name: ClassVar[str] = "score_tree_features"

    def run(self, model: Model, run: DecodingRun) -> Output:
        """Returns ((likeliest tokens, features [fed, width] or None), rows)."""
        likeliest, rows = super().run(model, run)
        return Output((likeliest, model.features_fed()), rows)

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        likeliest, values = output.small
        of_tree = Output(likeliest, output.rows)
        rows, tokens, payload = super().result(of_tree, kept, fed, to_drafts)
        features = None if values is None else Features(kept, values)
        return Given(RowsAndFeatures(rows, features), tokens, payload)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        """Traces contain no features, so the features here have a width of 0."""
        likeliest, rows = super().recorded(event, recording)
        no_features = np.empty((len(event.tokens), 0))
        return Output((likeliest, no_features), rows)
