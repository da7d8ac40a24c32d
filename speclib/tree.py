"""Many texts scored in one pass: an operation like those of ``operations``, and how a tree of
candidates is offered and followed.

A tree grows after a text: nodes in order, ``parents`` the place of the node that each one follows
(-1: the text), which comes before it. Knows no method, and no model beyond ``rows`` and ``tree``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from .operations import Request, Stopped
from .tokens import Drafted, Verdict, residual


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
            return np.concatenate([model.rows(t, 0, request.sampler) for t in self.texts])
        except Stopped:
            return None

    def result(self, value, kept: int, fed: int, drafted):
        said = value[len(value) - self.looked:].argmax(-1)
        return value, {"tokens": self.text[kept:], "said": tuple(said.tolist())}


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
    return next((i for i, parent in enumerate(parents) if parent != i - 1), len(parents))


def merged(paths: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(tokens, parents) of the tree of ``paths``, what they begin with in common once."""
    nodes = {(): -1}
    for path in paths:
        for end in range(1, len(path) + 1):
            nodes.setdefault(path[:end], len(nodes) - 1)
    del nodes[()]
    return tuple(path[-1] for path in nodes), tuple(nodes.get(path[:-1], -1) for path in nodes)


def offer(world, paths: Iterable[tuple[int, ...]]) -> tuple[tuple[Drafted, ...], tuple[int, ...]]:
    """The tree of ``paths`` as candidates after the world's text, and their parents: each path as
    far as the next end token and what is left to write allow; the target writes the last one."""
    def fit(path):
        ending = takewhile(lambda token: token not in world.request.eos, path)
        return tuple(islice(ending, world.left - 1))

    tokens, parents = merged(map(fit, paths))
    drafted = world.guess(tokens)
    return drafted, parents[:len(drafted)]


def follow(world, drafted, parents, rows: np.ndarray) -> Verdict:
    """``match`` down a tree: at each place the target draws its token with plain decoding's own
    coin, and the candidate that carries it passes. The output is plain decoding's, token for token,
    at any temperature. Row 0 follows the text, row i + 1 node i.

    In the trace a place counts once: the candidate that passed, or where none did the first as
    rejected; its siblings were never needed.
    """
    node, accepted = -1, ()
    while True:
        token = world.coins.choose(rows[node + 1], len(world.text) + len(accepted), "target")
        here = [n for n, parent in enumerate(parents) if parent == node]
        node = next((n for n in here if drafted[n].token == token), None)
        if node is None:
            for first in here[:1]:
                world.mark(drafted[first], "rejected")
            return Verdict(accepted, (token,))
        world.mark(drafted[node], "accepted")
        accepted += (token,)


def descend(world, drafted, parents, rows: np.ndarray) -> Verdict:
    """``verify`` down a tree, by removal and renormalisation: at each place the candidates are
    tried in order, x with min(1, p(x)/q(x)), strictly; after each that fails p is the residual.
    Where none passes the token comes from that; where there are none, from the row itself.

    Lossless where each q is what its token was drawn from, given its elder siblings: independent
    draws tested with one q each are, draws tested with the q of another candidate are not.
    In the trace a place counts once, as in ``follow``.
    """
    node, accepted = -1, ()
    while True:
        p, position = rows[node + 1], len(world.text) + len(accepted)
        here = [n for n, parent in enumerate(parents) if parent == node]
        node = None
        for index, n in enumerate(here):
            token, q = drafted[n].token, drafted[n].q
            chance = min(1.0, float(p[token]) / float(q[token]))
            if world.coins.choose(np.array((chance, 1 - chance)), position, "accept", index) == 0:
                node = n
                break
            p = residual(p, q)
        if node is None:
            for first in here[:1]:
                world.mark(drafted[first], "rejected")
            role = "residual" if here else "target"
            return Verdict(accepted, (world.coins.choose(p, position, role),))
        world.mark(drafted[node], "accepted")
        accepted += (drafted[node].token,)
