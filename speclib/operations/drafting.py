"""What drafting operations have in common.

This module depends on no method, and uses only a model's ``rows``, ``chances`` and
``level``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from speclib.core.sampling import Rows, Sampler, Tokens
from speclib.core.text import AnyText
from speclib.core.verification import TEXT

from .model import Model
from .operation import Operation, Output, Pass


@dataclass(frozen=True)
class Drafting(Operation):
    """Draft ``n`` tokens, or levels of a tree, after ``text``."""

    n: int

    @property
    def most_drafts(self) -> int:
        return self.n

    @property
    def is_empty(self) -> bool:
        return not self.n

    def within(self, tokens_left: int) -> Self:
        if self.n <= tokens_left:
            return self
        return replace(self, n=tokens_left)


@dataclass(frozen=True)
class DraftingByLevel(Drafting):
    """Draft a tree: one pass reads the text, and each further pass writes a level."""

    @property
    def level_passes(self) -> int:
        """How many passes follow the one that reads the text."""
        return self.n - 1

    def passes(self, kept: int, fed: int) -> list[Pass]:
        """The first pass, then the others.

        We assume that the others are equal: each is fed the same share of the tokens.
        """
        first = len(self.text) - kept
        later = fed - first
        if later < 0:
            return []  # it failed before it had read its text
        passes = [Pass(fed=first, kept=kept)]
        if later:
            times = self.level_passes
            passes.append(Pass(fed=later / times, kept=len(self.text), times=times))
        return passes


def level_rows(
    model: Model, text: AnyText, parents: Sequence[int], new: int, sampler: Sampler
) -> Rows:
    """The draft's rows [new, V] after a tree's last ``new`` nodes; see Model.level.

    Without nodes, it is the row [1, V] after the bare text.
    """
    if parents:
        return model.level(text, tuple(parents), new, sampler)

    rows = model.rows(text, 0, sampler)
    return model.chances()[np.newaxis] if sampler.greedy else rows


def depth_first(tokens: Sequence[int], parents: Sequence[int], rows: Rows) -> Output:
    """The same tree in depth-first order: ((tokens, parents), q rows)."""
    way_to_node: list[Tokens] = []
    for node, parent in enumerate(parents):
        way_before = way_to_node[parent] if parent >= 0 else ()
        way_to_node.append((*way_before, node))

    order = sorted(range(len(tokens)), key=way_to_node.__getitem__)
    new_number = {node: number for number, node in enumerate(order)}
    new_tokens = tuple(tokens[node] for node in order)
    new_parents = tuple(new_number.get(parents[node], TEXT) for node in order)
    return Output((new_tokens, new_parents), rows[order])
