"""A tree of candidates after a text, as plain tuples.

A tree grows after a text: nodes in order, ``parents`` the place of the node that each one follows
(-1: the text), which comes before it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def ancestry(parents) -> np.ndarray:
    """[n, n], true where the row's node follows the column's, or is it."""
    sees = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
    return sees


def paths(text, parents) -> tuple[tuple[int, ...], ...]:
    """What the rows of a Tree follow: the text, then the text and the path to each node."""
    start = len(text) - len(parents)
    nodes, text = np.array(text[start:], int), tuple(text[:start])
    return (text, *(text + tuple(nodes[sees].tolist()) for sees in ancestry(parents)))


def stem(parents) -> int:
    """How many nodes, from the first on, follow each other: a cache may go on with them."""
    return next(
        (i for i, parent in enumerate(parents) if parent != i - 1), len(parents)
    )


def merged(paths: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(tokens, parents) of the tree of ``paths``, what they begin with in common once."""
    nodes = {(): -1}
    for path in paths:
        for end in range(1, len(path) + 1):
            nodes.setdefault(path[:end], len(nodes) - 1)
    del nodes[()]
    return tuple(path[-1] for path in nodes), tuple(
        nodes.get(path[:-1], -1) for path in nodes
    )
