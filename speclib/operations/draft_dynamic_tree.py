"""Drafting a tree whose shape follows the draft's confidence, with or without features.

This module depends on no method, and uses only a model's ``rows``, ``chances``,
``level`` (one pass for a whole level) and ``reading`` (a head that reads features).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from speclib.core.candidate_tree import CandidateTree
from speclib.core.features import Features
from speclib.core.sampling import Row, Rows, Tokens
from speclib.core.verification import TEXT

from .draft_tree import DraftedTree
from .drafting import DraftingByLevel, depth_first, level_rows
from .model import Model
from .operation import DecodingRun, Given, Output, RecordedRun, ToDrafts
from .payload import OwnEvent


@dataclass(frozen=True)
class DraftedDynamicTree(DraftedTree):
    """Like ``DraftedTree``.

    ``levels``: the number of passes, including passes for nodes that were left out.
    """

    levels: int = 0

    def pass_count(self, tokens: Tokens) -> int:
        return self.levels


class Candidate(NamedTuple):
    """A node that may be offered.

    ``number``: its number among all candidates; -1 is the text. ``parent``: the number
    of the node before it. ``chance``: the draft's probability of the whole path to it.
    """

    number: int
    token: int
    parent: int
    chance: float


ROOT = Candidate(TEXT, TEXT, TEXT, 1.0)


@dataclass(frozen=True)
class DraftDynamicTree(DraftingByLevel):
    """Draft the ``budget`` likeliest nodes of a tree of ``n`` levels after ``text``.

    The result is a CandidateTree with its nodes in depth-first order. There are two
    phases:

    *Expansion.* Each pass gives every node of the last level its ``width`` likeliest
    children. The ``width`` best nodes of the new level, by the probability of the whole
    path to them, are fed in the next pass; the others get no children.

    *Reranking.* The ``budget`` best of all nodes, fed or not, are offered. No node is
    better than its parent, so they form a tree::

        text ──┬── a .8 ──┬── b .6 ── c .5       width = 2, budget = 4: a, b, c, e;
               │          └── d .1               f is never fed, d and f are left out
               └── e .2 ───── f .1

    Candidates are not sampled: at any temperature they are the draft's likeliest
    tokens. So the shape may depend on all of them, and each candidate is accepted with
    the target's own probability for it.

    ``features``: the target's features of the text's last tokens. A head reads them;
    any other model ignores them.

    Source: Li et al. 2024, "EAGLE-2: Faster Inference of Language Models with Dynamic
    Draft Trees", section 4.
    """

    width: int
    budget: int
    features: Features | None = field(default=None, compare=False, repr=False)

    name: ClassVar[str] = "draft_dynamic_tree"
    payload_type: ClassVar = DraftedDynamicTree

    @property
    def most_drafts(self) -> int:
        return self.budget

    def within(self, tokens_left: int) -> DraftDynamicTree:
        return super().within(min(tokens_left, self.budget))

    def run(self, model: Model, run: DecodingRun) -> Output:
        """Returns ((tokens, parents), the chance of each node [nodes])."""
        with self._passes_of(model):
            return self._draft(model, run)

    def _passes_of(self, model: Model) -> AbstractContextManager[None]:
        """A context in which a head reads the features."""
        if self.features is None:
            return nullcontext()
        return model.reading(self.text, self.features)

    def _draft(self, model: Model, run: DecodingRun) -> Output:
        candidates: list[Candidate] = []
        fed: list[Candidate] = []  # nodes that already have children, by level
        frontier = [ROOT]  # nodes that get children next
        for _ in range(self.n):
            rows = self._rows_after(fed, len(frontier), model, run)

            level: list[Candidate] = []
            for parent, row in zip(frontier, rows, strict=True):
                number = len(candidates) + len(level)
                level += self._children(parent, row, number)
            candidates += level
            frontier = best(level, self.width)
            fed += frontier
        return tree_of(best(candidates, self.budget))

    def _rows_after(
        self, fed: list[Candidate], new: int, model: Model, run: DecodingRun
    ) -> Rows:
        """The draft's rows [new, V] after the last ``new`` nodes that are fed."""
        index_of = {node.number: index for index, node in enumerate(fed)}
        parents = [index_of.get(node.parent, TEXT) for node in fed]
        text = self.text + tuple(node.token for node in fed)
        return level_rows(model, text, parents, new, run.sampler)

    def _children(self, parent: Candidate, row: Row, first: int) -> list[Candidate]:
        """The likeliest children of ``parent``, best first, numbered from ``first``."""
        ranked = np.argsort(-row, kind="stable")[: self.width]
        possible = [int(token) for token in ranked if row[token] > 0]
        children = []
        for number, token in enumerate(possible, first):
            chance = parent.chance * float(row[token])
            children.append(Candidate(number, token, parent.number, chance))
        return children

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        tokens, parents = output.small
        tree = CandidateTree(to_drafts(tokens, None), parents)
        fed_drafts = kept + fed - len(self.text) if tokens else 0
        payload = DraftedDynamicTree(parents, fed_drafts, levels=self.n)
        return Given(tree, tokens, payload)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        no_chances = np.empty(len(event.tokens))
        return Output((event.tokens, event.payload.parents), no_chances)


def best(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """The ``count`` likeliest, best first; among equals, the one found first."""
    ranked = sorted(candidates, key=lambda candidate: -candidate.chance)
    return ranked[:count]


def tree_of(chosen: Sequence[Candidate]) -> Output:
    """The ``chosen`` nodes, parents before their children, as a tree and its chances.

    Returns ((tokens, parents), chances [nodes]), depth first.
    """
    node_of = {candidate.number: node for node, candidate in enumerate(chosen)}
    tokens = [candidate.token for candidate in chosen]
    parents = [node_of.get(candidate.parent, TEXT) for candidate in chosen]
    chances = np.array([candidate.chance for candidate in chosen])
    return depth_first(tokens, parents, chances)
