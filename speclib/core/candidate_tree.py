"""Trees of candidates: several possible continuations of one text, scored together.

A tree follows a text. Its nodes are tokens in a fixed order. ``parents`` contains the
number of each node's parent, or -1 if the parent is the text itself. A parent always
comes before its children:

    text ── a(0) ── b(1) ── c(2)        tokens   a   b   c   d   e
             │       └───── d(3)        parents -1   0   1   1   0
             └────── e(4)

The paths of this tree are the text, text+a, text+a+b, text+a+b+c, text+a+b+d, text+a+e.

This module uses no model and no method.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .sampling import Drafted, Tokens, ids
from .text import AnyText, as_text, first_tokens


class CandidateTree(NamedTuple):
    """Drafted tokens that form a tree: see the picture above."""

    drafted: tuple[Drafted, ...]
    parents: tuple[int, ...]

    @property
    def tokens(self) -> Tokens:
        """The token of every node."""
        return ids(self.drafted)

    def children(self, node: int) -> list[int]:
        """The children of ``node`` (-1: of the text), in the order of the nodes."""
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def nodes_of(self, path: Sequence[int]) -> list[int]:
        """The node of each token of ``path``, which starts right after the text."""
        nodes: list[int] = []
        node = -1
        for token in path:
            for child in self.children(node):
                if self.drafted[child].token == token:
                    node = child
                    break
            nodes.append(node)
        return nodes


def ancestry(parents: Sequence[int]) -> np.ndarray:
    """[n, n] booleans: whether the column's node is on the path to the row's node."""
    on_path = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            on_path[node] |= on_path[parent]
    return on_path


def depths(parents: Sequence[int]) -> tuple[int, ...]:
    """The number of nodes that come before each node on its path."""
    depth_of_node: list[int] = []
    for parent in parents:
        depth = depth_of_node[parent] + 1 if parent >= 0 else 0
        depth_of_node.append(depth)
    return tuple(depth_of_node)


def paths(text: Sequence[int], parents: Sequence[int]) -> tuple[AnyText, ...]:
    """The texts that a tree's rows follow: the bare text, then the path to each node.

    ``text`` ends with the tree's own tokens, in the order of ``parents``.
    """
    start = len(text) - len(parents)
    bare_text = first_tokens(as_text(text), start)
    # Node i has its path at index i + 1, the bare text at 0.
    paths_of_rows = [bare_text]
    for parent, token in zip(parents, text[start:], strict=True):
        paths_of_rows.append(paths_of_rows[parent + 1] + (token,))
    return tuple(paths_of_rows)


def stem(parents: Sequence[int]) -> int:
    """How many nodes come before the first branch; a KV cache keeps only those."""
    for node, parent in enumerate(parents):
        if parent != node - 1:
            return node
    return len(parents)


def merged(paths: Iterable[Tokens]) -> tuple[Tokens, tuple[int, ...]]:
    """The tree of ``paths``, with shared beginnings merged, as (tokens, parents)."""
    node_of_path: dict[Tokens, int] = {(): -1}
    for path in paths:
        for end in range(1, len(path) + 1):
            node_of_path.setdefault(path[:end], len(node_of_path) - 1)
    del node_of_path[()]

    tokens = tuple(path[-1] for path in node_of_path)
    parents = tuple(node_of_path.get(path[:-1], -1) for path in node_of_path)
    return tokens, parents
