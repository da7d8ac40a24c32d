"""Drafting a tree of candidates, one level per pass.

This module depends on no method, and uses only a model's ``rows``, ``chances``,
``level`` (one pass for a whole level) and ``drafting`` (layers that share an input).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from speclib.core.candidate_tree import CandidateTree, depths
from speclib.core.certain_rows import stacked
from speclib.core.sampling import Row, Rows, Tokens, certain
from speclib.core.verification import TEXT

from .drafting import DraftingByLevel, depth_first, level_rows
from .model import Model
from .operation import DecodingRun, Given, Output, Pass, RecordedRun, ToDrafts
from .payload import DraftPayload, OwnEvent


@dataclass(frozen=True)
class DraftedTree(DraftPayload):
    """The event's tokens are the nodes of a tree; see ``core.candidate_tree``.

    ``fed``: how many of them were fed, to draft the next level. ``fuzzy``: how many of
    the KV cache's last slots were filled by fuzzy passes. ``keeps_fuzzy``: whether
    these slots are kept.
    """

    parents: tuple[int, ...] = ()
    fed: int = 0
    fuzzy: int = 0
    keeps_fuzzy: bool = False

    def drafts_fed(self, tokens: Tokens) -> int:
        return self.fed

    @property
    def fuzzy_slots(self) -> int:
        return self.fuzzy

    @property
    def drops_fuzzy_slots(self) -> bool:
        return not self.keeps_fuzzy

    def depths(self, tokens: Tokens) -> tuple[int, ...]:
        return depths(self.parents)


class Parent(NamedTuple):
    """A node whose children are to be drafted.

    ``node``: its number, or -1 for the text. ``path_chance``: the draft's probability
    of the whole path to it. ``chances``: the draft's distribution after it.
    """

    node: int
    path_chance: float
    chances: Row


@dataclass(frozen=True)
class DraftTree(DraftingByLevel):
    """Draft a tree of ``n`` levels after ``text``, one pass per level.

    The tree has at most ``width`` nodes per level and ``budget`` in all (at least
    ``n``; None is n * width). The output is ((tokens, parents), q rows [nodes, V]). The
    nodes are in depth-first order, so the path of first candidates comes first.

                     level 1   level 2   level 3          n = 3, width = 3
        text ──┬──── a ──┬──── b ─────── c
               │         └──── d
               └──── e ─────── f ─────── g

    *How children are drawn.* They are drawn without replacement: the q of each child is
    the draft's distribution without its earlier siblings, renormalised. As the
    temperature goes to 0, the children are the likeliest tokens in order, each with
    probability 1.

    *How many children a node has.* The rank chance of a node's k-th child is the
    probability of the path to the node, times the k-th highest probability after it. A
    node has as many children as it has rank chances among the ``width`` best of its
    level. This number never depends on a token that is yet to be drawn; otherwise the
    tokens would not be distributed according to q.

    *Layers that share an input.* With ``lp`` above 1 the passes are fuzzy: up to ``lp``
    of the draft model's layers get the same input. A model that cannot do this raises
    SpeclibError. None or 1: all passes are exact. ``calibrate``: the first pass is
    exact nevertheless, and at the end all fuzzy cache entries are dropped. So the next
    tree begins with an exact pass over the accepted tokens.

    Source: EasySpec, sections 3.1 and 3.2, for fuzzy passes and calibration. The paper
    does not specify the shape of the tree.
    """

    width: int
    budget: int | None = None
    lp: int | None = None
    calibrate: bool = True

    name: ClassVar[str] = "draft_tree"
    payload_type: ClassVar = DraftedTree
    gives_distributions: ClassVar[bool] = True

    @property
    def most_drafts(self) -> int:
        return self.n * self.width

    def within(self, tokens_left: int) -> DraftTree:
        most = tokens_left if self.budget is None else min(tokens_left, self.budget)
        return super().within(most)

    def run(self, model: Model, run: DecodingRun) -> Output:
        with self._passes_of(model):
            return self._draft(model, run)

    def _passes_of(self, model: Model) -> AbstractContextManager[None]:
        """A context in which the model's passes are fuzzy if ``lp`` is above 1."""
        if self.lp is None:
            return nullcontext()
        return model.drafting(self.lp, self.calibrate)

    def _draft(self, model: Model, run: DecodingRun) -> Output:
        tokens: list[int] = []
        parents: list[int] = []
        q_rows: list[Row] = []

        frontier = [TEXT]  # the nodes of the last level, and their probabilities
        path_chances = [1.0]
        for level in range(self.n):
            # One pass: the draft's row after every node of the last level.
            text = self.text + tuple(tokens)
            rows = level_rows(model, text, parents, len(frontier), run.sampler)
            child_counts = self.allot_children(
                path_chances, rows, levels_left=self.n - level - 1, drafted=len(tokens)
            )
            expanded = list(map(Parent, frontier, path_chances, rows))

            # The next level: each node's children.
            frontier, path_chances = [], []
            for parent, count in zip(expanded, child_counts, strict=True):
                children = self.draw_children(parent.chances, count, level, run)
                for token, q in children:
                    frontier.append(len(tokens))
                    chance = float(parent.chances[token])
                    path_chances.append(parent.path_chance * chance)
                    tokens.append(token)
                    parents.append(parent.node)
                    q_rows.append(q)

        return depth_first(tokens, parents, stacked(q_rows, model.vocab))

    def allot_children(
        self,
        path_chances: Sequence[float],
        rows: Rows,
        levels_left: int,
        drafted: int,
    ) -> list[int]:
        """How many children each node of a level gets.

        ``drafted``: the number of nodes drafted so far. One node of the budget is
        reserved for each of the ``levels_left`` levels after this one.
        """
        budget = self.n * self.width if self.budget is None else self.budget
        most = min(self.width, budget - drafted - levels_left)

        # Each node's highest probabilities, descending, times its path's.
        best_of_rows = np.partition(rows, -min(most, rows.shape[1]))[:, -most:]
        ranked = -np.sort(-best_of_rows)
        chances = (np.array(path_chances)[:, None] * ranked).ravel()

        # The best of the whole level; each counts for its node.
        best = np.argsort(-chances, kind="stable")[:most]
        nodes = best[chances[best] > 0] // ranked.shape[1]
        child_counts: list[int] = np.bincount(nodes, minlength=len(rows)).tolist()
        return child_counts

    def draw_children(
        self, chances: Row, count: int, level: int, run: DecodingRun
    ) -> Iterator[tuple[int, Row]]:
        """``count`` children of a node: each a token and the q it was drawn from.

        Siblings have different coins. Cousins share a coin, since at most one of them
        is on the path that is followed.
        """
        position = len(self.text) + level
        for index in range(count):
            q = chances
            if run.sampler.greedy:
                q = certain((int(q.argmax()),), len(q))[0]
            token = run.coins.choose(q, position, "draft", index)
            yield token, q
            if index < count - 1:
                chances = without(token, chances)

    def passes(self, kept: int, fed: int) -> list[Pass]:
        """The passes; if nothing is cached, the first one is exact in any case."""
        passes = super().passes(kept, fed)
        exact = 1 if self.calibrate or not kept else 0
        fuzzy = [forward._replace(lp=self.lp) for forward in passes[exact:]]
        return passes[:exact] + fuzzy

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        (tokens, parents), rows = output
        tree = CandidateTree(to_drafts(tokens, rows), parents)
        fed_drafts = kept + fed - len(self.text)
        fuzzy = self._fuzzy_slots(kept, fed, fed_drafts)
        keeps_fuzzy = fuzzy > 0 and not self.calibrate
        payload = DraftedTree(parents, fed_drafts, fuzzy, keeps_fuzzy)
        return Given(tree, tokens, payload)

    def _fuzzy_slots(self, kept: int, fed: int, fed_drafts: int) -> int:
        """How many slots fuzzy passes filled; an exact first pass does not count."""
        if self.lp is None or self.lp == 1:
            return 0
        first_is_exact = self.calibrate or not kept
        return fed_drafts if first_is_exact else fed

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        rows = certain(event.tokens, recording.vocab)
        return Output((event.tokens, event.payload.parents), rows)


def without(token: int, chances: Row) -> Row:
    """``chances`` without ``token``, renormalised."""
    rest = chances.copy()
    rest[token] = 0
    rest /= rest.sum()
    return rest
