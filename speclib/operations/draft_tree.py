"""Drafting a tree: an operation like those of ``operations``.

Knows no method, and no model beyond ``rows``, ``chances`` and, where there are any, ``level`` (see
HFModel) and ``drafting`` (see Layered).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from speclib.core.candidate_tree import paths
from speclib.core.sampling import certain
from speclib.errors import SpeclibError

from .operation import Request, Stopped


class Grow(NamedTuple):
    """Draft a tree of ``n`` levels after ``text``, one pass a level: at most ``width`` nodes a
    level, ``budget`` (at least ``n``; None: n * width) in all; the result is ((tokens, parents),
    their q rows [nodes, V]), the line of first candidates first.

    The children of a node are drawn without replacement: q' of each is the draft's q less its
    elder siblings, renormalised. As the temperature goes to 0 those are the likeliest in order,
    each certain. A node has as many children as of its ranked chances, times the chance of the way
    to it, are among the ``width`` best of the level: that looks at no token that is yet to be
    drawn, or else q' would not be what they are drawn from.

    With ``lp`` the drafter gives one input to up to so many of its layers, in *fuzzy* passes (one
    that cannot raises SpeclibError); None or 1: all are exact. ``calibrate``: the first one is
    exact all the same, and what fuzzy ones cached goes at the end, so that the next tree begins
    with an exact pass over what was accepted.

    Source: fuzzy passes and calibration: EasySpec, sections 3.1, 3.2. A tree's shape is open there.
    """

    text: tuple[int, ...]
    n: int
    width: int
    budget: int | None = None
    lp: int | None = None
    calibrate: bool = True
    name = "grow"

    def run(self, model, request: Request):
        shares = hasattr(model, "drafting")
        if self.lp and self.lp > 1 and not shares:
            raise SpeclibError(
                f"lp is {self.lp}, but this draft cannot compute several layers at "
                "once: take a Llama, Qwen2 or Qwen3 in torch, on one place or with "
                'spread = "layers"; or give lp=1, which is tree SD'
            )
        shares = shares and self.lp is not None
        try:
            with model.drafting(self.lp, self.calibrate) if shares else nullcontext():
                return self._grown(model, request)
        except Stopped:
            return (), np.empty(0)

    def _grown(self, model, request: Request):
        tokens, parents, qs, level, reached = [], [], [], [-1], [1.0]
        for depth in range(self.n):
            rows = expanded(
                model, self.text + tuple(tokens), parents, len(level), request.sampler
            )
            counts, level, ways = (
                self._counts(reached, rows, depth, len(tokens)),
                [],
                list(zip(level, reached, rows, strict=True)),
            )
            reached = []
            for (node, way, row), count in zip(ways, counts, strict=True):
                for token, q in self._drawn(row, count, depth, request):
                    level.append(len(tokens))
                    tokens.append(token)
                    parents.append(node)
                    reached.append(way * float(row[token]))
                    qs.append(q)
        return in_lines(
            tokens, parents, np.stack(qs) if qs else np.empty((0, model.vocab))
        )

    def _counts(self, reached, rows: np.ndarray, depth: int, there: int) -> list[int]:
        """How many children each node of a level has; every level to come still gets one."""
        budget = self.n * self.width if self.budget is None else self.budget
        most = min(self.width, budget - there - (self.n - depth - 1))
        ranked = -np.sort(-np.partition(rows, -min(most, rows.shape[1]))[:, -most:])
        chances = (np.array(reached)[:, None] * ranked).ravel()
        best = np.argsort(-chances, kind="stable")[:most]
        return np.bincount(
            best[chances[best] > 0] // ranked.shape[1], minlength=len(rows)
        ).tolist()

    def _drawn(self, row: np.ndarray, count: int, depth: int, request: Request):
        """``count`` children of a node, each with its q' and a coin of its own; cousins share
        theirs: at most one of them is on the way that is followed."""
        for index in range(count):
            q = certain((row.argmax(),), len(row))[0] if request.sampler.greedy else row
            token = request.coins.choose(q, len(self.text) + depth, "draft", index)
            yield token, q
            if index < count - 1:
                row = row.copy()
                row[token] = 0
                row /= row.sum()

    def result(self, value, kept: int, fed: int, drafted):
        tokens, parents = value[0] or ((), ())
        return (
            (drafted(tokens, value[1]), parents),
            {"tokens": tokens, "parents": parents, "last": kept + fed - len(self.text)},
        )


def expanded(model, text, parents, new: int, sampler) -> np.ndarray:
    """The draft's rows [new, V] after the last ``new`` nodes of a tree, or [1, V] after the bare
    text; greedy rows rank nothing, so at temperature 1 there. In the model's own way, one pass
    that feeds those nodes alone, or one path after the other."""
    if parents and hasattr(model, "level"):
        return model.level(text, tuple(parents), new, sampler)
    return one_by_one(model, text, parents, new, sampler)


def one_by_one(model, text, parents, new: int, sampler) -> np.ndarray:
    """The same, one path after the other."""
    rows = []
    for path in paths(text, parents)[-new:]:
        row = model.rows(path, 0, sampler)[0]
        rows.append(model.chances() if sampler.greedy else row)
    return np.array(rows)


def in_lines(tokens, parents, qs: np.ndarray):
    """The same tree, depth first: ((tokens, parents), qs)."""
    lines = []
    for node, parent in enumerate(parents):
        lines.append((lines[parent] if parent >= 0 else ()) + (node,))
    order = sorted(range(len(lines)), key=lines.__getitem__)
    place = {node: at for at, node in enumerate(order)}
    return (
        (
            tuple(tokens[n] for n in order),
            tuple(place.get(parents[n], -1) for n in order),
        ),
        qs[order],
    )
