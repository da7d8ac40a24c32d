"""How drafted tokens are tested: in a line, and down a tree."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from .candidate_tree import merged
from .sampling import Drafted, residual


class Verdict(NamedTuple):
    """``accepted``: drafted tokens that passed. ``extra``: one more token, or none: the residual's
    after a rejection, the target's own (the bonus) when all passed and a row was left over."""

    accepted: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.accepted + self.extra


def verify(world, drafted, rows: np.ndarray) -> Verdict:
    """Tests ``drafted`` in order against ``rows`` [n, V] until one fails or either runs out.

    Row i is p after the committed text and i drafted tokens. A token x passes when a coin falls
    under min(1, p(x)/q(x)), strictly; the first to fail is replaced from the residual. If every
    drafted token passed and one more row is left, the next token is drawn from it: with nothing
    drafted this is plain decoding. ``world`` lends its text, coins and trace marks.

    Source: Leviathan et al. 2023, Algorithm 1; PEARL section 2, equation 1.
    """
    start, accepted = len(world.text), ()
    for drafted_token, p in zip(drafted, rows, strict=False):
        token, q = drafted_token.token, drafted_token.q
        position = start + len(accepted)
        chance = min(1.0, float(p[token]) / float(q[token]))
        if world.coins.choose(np.array((chance, 1 - chance)), position, "accept") == 1:
            world.mark(drafted_token, "rejected")
            return Verdict(
                accepted, (world.coins.choose(residual(p, q), position, "residual"),)
            )
        world.mark(drafted_token, "accepted")
        accepted += (token,)
    if len(rows) <= len(accepted):
        return Verdict(accepted, ())
    position = start + len(accepted)
    return Verdict(
        accepted, (world.coins.choose(rows[len(accepted)], position, "target"),)
    )


def match(world, drafted, rows: np.ndarray) -> Verdict:
    """``verify`` by another rule: a drafted token passes when it is the one that the target draws
    there itself, with plain decoding's own coin. The output is plain decoding's, token for token,
    at any temperature and under any timing; fewer tokens pass than by the ratio test.

    Source: Timor et al. 2024 (DSI), section 3.1, Algorithm 1, lines 8-9.
    """
    start, accepted = len(world.text), ()
    for drafted_token, p in zip(drafted, rows, strict=False):
        token = world.coins.choose(p, start + len(accepted), "target")
        if token != drafted_token.token:
            world.mark(drafted_token, "rejected")
            return Verdict(accepted, (token,))
        world.mark(drafted_token, "accepted")
        accepted += (token,)
    if len(rows) <= len(accepted):
        return Verdict(accepted, ())
    token = world.coins.choose(rows[len(accepted)], start + len(accepted), "target")
    return Verdict(accepted, (token,))


def offer(
    world, paths: Iterable[tuple[int, ...]]
) -> tuple[tuple[Drafted, ...], tuple[int, ...]]:
    """The tree of ``paths`` as candidates after the world's text, and their parents: each path as
    far as the next end token and what is left to write allow; the target writes the last one."""

    def fit(path):
        ending = takewhile(lambda token: token not in world.request.eos, path)
        return tuple(islice(ending, world.left - 1))

    tokens, parents = merged(map(fit, paths))
    drafted = world.guess(tokens)
    return drafted, parents[: len(drafted)]


def follow(world, drafted, parents, rows: np.ndarray) -> Verdict:
    """``match`` down a tree: at each place the target draws its token with plain decoding's own
    coin, and the candidate that carries it passes. The output is plain decoding's, token for token,
    at any temperature. Row 0 follows the text, row i + 1 node i.

    In the trace a place counts once: the candidate that passed, or where none did the first as
    rejected; its siblings were never needed.
    """
    node, accepted = -1, ()
    while True:
        token = world.coins.choose(
            rows[node + 1], len(world.text) + len(accepted), "target"
        )
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
            if (
                world.coins.choose(
                    np.array((chance, 1 - chance)), position, "accept", index
                )
                == 0
            ):
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
