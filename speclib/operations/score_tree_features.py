"""Scoring a tree of candidates in one pass that also gives features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from speclib.core.features import Features
from speclib.core.sampling import Rows

from .model import Model
from .operation import Finished, MakeDrafts, Raw, Recording, Request
from .payload import OwnEvent
from .score_tree import ScoreTree


class RowsAndFeatures(NamedTuple):
    """What a pass of the target gave.

    ``features``: of all tokens that it fed; None from a model that has none.
    """

    rows: Rows
    features: Features | None


@dataclass(frozen=True)
class ScoreTreeFeatures(ScoreTree):
    """As ``ScoreTree``; also gives the features of the tokens that were fed.

    These are the text's last ones, what the cache lacked, and then the tree's nodes, in
    their order.
    """

    name: ClassVar[str] = "score_tree_features"

    def run(self, model: Model, request: Request) -> Raw | None:
        """((likeliest tokens, features [fed, width] or None), rows)."""
        raw = super().run(model, request)
        if raw is None:
            return None
        return Raw((raw.small, model.features_fed()), raw.rows)

    def result(
        self, raw: Raw, kept: int, fed: int, make_drafts: MakeDrafts
    ) -> Finished:
        likeliest, values = raw.small
        of_tree = Raw(likeliest, raw.rows)
        rows, tokens, payload = super().result(of_tree, kept, fed, make_drafts)
        features = None if values is None else Features(kept, values)
        return Finished(RowsAndFeatures(rows, features), tokens, payload)

    def recorded(self, event: OwnEvent, recording: Recording) -> Raw:
        """No trace has features: they come back with a width of 0."""
        of_tree = super().recorded(event, recording)
        no_features = np.empty((len(event.tokens), 0))
        return Raw((of_tree.small, no_features), of_tree.rows)
