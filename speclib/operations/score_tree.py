"""Many texts scored in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from speclib.core.candidate_tree import paths

from .operation import Request, Stopped


class Tree(NamedTuple):
    """The distributions after a text and after the path to each node of a tree. ``text`` ends with
    the nodes' tokens, in their order; the result is rows [len(parents) + 1, V], the first of them
    after the text alone. Of the last ``looked`` rows only the likeliest token is wanted.
    """

    text: tuple[int, ...]
    parents: tuple[int, ...]
    looked: int = 0
    name = "score"

    @property
    def last(self) -> int:
        return len(self.parents)

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """What the rows follow, in their order."""
        return paths(self.text, self.parents)

    def run(self, model, request: Request):
        try:
            if hasattr(model, "tree"):
                return model.tree(self.text, self.parents, request.sampler)
            return np.concatenate(
                [model.rows(t, 0, request.sampler) for t in self.texts]
            )
        except Stopped:
            return None

    def result(self, value, kept: int, fed: int, drafted):
        said = value[len(value) - self.looked :].argmax(-1)
        return value, {"tokens": self.text[kept:], "said": tuple(said.tolist())}
