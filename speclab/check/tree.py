"""Test cases for a rule that tests drafts in a tree.

Such a rule is called as ``rule(tokens, parents, q, p, coin)``:

    tokens    a list of every node's token; a parent comes before its children
    parents   every node's parent by number, or -1 for the text
    q         [n, V], the row (distribution) that each node's token was drawn or chosen
              from; without replacement, earlier siblings have probability 0 in it
    p         [n + 1, V], the target's rows: row 0 follows the text, row i + 1 node i
    coin      coin() returns a new random number in [0, 1)

and returns the committed tokens: an accepted path down from the text, and one more
token.

The cases have trees of the shapes below, among others. We enumerate all nodes' tokens,
so each node has every possible token in turn:

    two children     text ─┬─ 0        a child and       text ─┬─ 0 ─── 2
                           └─ 1        a grandchild            └─ 1

    two and two      text ─┬─ 0 ─┬─ 2
                           │     └─ 3
                           └─ 1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from speclab.check.candidate_mistakes import RIGHT, TEXT, down_a_tree
from speclab.check.case import (
    Array,
    Case,
    chances,
    drawn_from,
    mean_length,
    random_models,
    with_true_q,
)
from speclib.core.candidate_tree import depths
from speclib.core.sampling import Row, Tokens

BY_REMOVAL = "by removal and renormalisation"  # our own rule; other rules may do better


class DrawnTree(NamedTuple):
    """The tokens of a tree's nodes, and the row q of each."""

    tokens: Tokens
    q: tuple[Row, ...]


@dataclass(frozen=True)
class TreeCase(Case[DrawnTree]):
    """A draft and a target model, and the shape of a tree.

    ``put_back``: whether a node may have the token of an earlier sibling.
    """

    parents: Tokens
    put_back: bool = False

    @property
    def longest(self) -> int:
        return max(depths(self.parents)) + 2  # a path of nodes, and one more token

    def proposals(self) -> Iterator[tuple[DrawnTree, float]]:
        """Every possible tree, drawn node by node, with its probability."""
        yield from self._drawn_on(DrawnTree((), ()), 1.0)

    def _drawn_on(
        self, drawn: DrawnTree, probability: float
    ) -> Iterator[tuple[DrawnTree, float]]:
        node = len(drawn.tokens)
        if node == len(self.parents):
            yield drawn, probability
            return
        row = self._row_of(node, drawn.tokens)
        shares = chances(row, self.choice)
        for token in np.flatnonzero(shares):
            longer = DrawnTree((*drawn.tokens, int(token)), (*drawn.q, row))
            yield from self._drawn_on(longer, probability * float(shares[token]))

    def _row_of(self, node: int, tokens: Tokens) -> Row:
        """The row from which a node's token is drawn, without earlier siblings."""
        parent = self.parents[node]
        row = self.draft[self._path(parent, tokens)].copy()
        if self.put_back:
            return row
        for earlier in range(node):
            if self.parents[earlier] == parent:
                row[tokens[earlier]] = 0
        drawn_from: Row = row / row.sum()
        return drawn_from

    def _path(self, node: int, tokens: Tokens) -> Tokens:
        """The tokens on the path from the text down to a node."""
        path: Tokens = ()
        while node != TEXT:
            path = (tokens[node], *path)
            node = self.parents[node]
        return path

    def sample(self, random: np.random.Generator) -> DrawnTree:
        drawn = DrawnTree((), ())
        for node in range(len(self.parents)):
            row = self._row_of(node, drawn.tokens)
            token = drawn_from(chances(row, self.choice), random)
            drawn = DrawnTree((*drawn.tokens, token), (*drawn.q, row))
        return drawn

    def tokens_of(self, proposal: DrawnTree) -> Tokens:
        return proposal.tokens

    def arguments(self, proposal: DrawnTree, array: Array) -> tuple[Any, ...]:
        p_rows = [self.target[()]]
        for node in range(len(self.parents)):
            p_rows.append(self.target[self._path(node, proposal.tokens)])
        q, p = array(np.stack(proposal.q)), array(np.stack(p_rows))
        return list(proposal.tokens), list(self.parents), q, p

    def best_rates(self) -> dict[str, float]:
        rule = with_true_q(down_a_tree(RIGHT), self.choice)
        return {BY_REMOVAL: mean_length(self.distribution(rule))}


def random_tree(name: str, vocab: int, parents: Tokens, seed: int) -> TreeCase:
    """A case whose models are drawn at random."""
    draft, target = random_models(vocab, max(depths(parents)) + 1, seed)
    return TreeCase(name, draft, target, parents)


TREES = (
    random_tree("two children of two tokens", 2, (-1, -1), seed=11),
    random_tree("two children of three tokens", 3, (-1, -1), seed=12),
    random_tree("two children and a grandchild", 2, (-1, -1, 0), seed=13),
    random_tree("two children and two grandchildren", 3, (-1, -1, 0, 0), seed=14),
    random_tree("three children and a grandchild", 3, (-1, -1, -1, 1), seed=15),
)


def _certain_tree(first: int) -> TreeCase:
    """A tree with a deterministic target, whose first token is ``first``."""
    tree = random_tree(f"greedy: {first} comes first", 3, (-1, -1, 0), seed=16)
    target = {text: np.eye(3)[(len(text) + first) % 3] for text in tree.target}
    return replace(tree, target=target)


GREEDY_TREES = tuple(_certain_tree(first) for first in range(3))
