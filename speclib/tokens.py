"""Tokens and chance: samplers, coins, drafted tokens and their verification.

Symbols, spelled once for every method:
  p        the target's distribution of the next token, shape [V]
  q        the draft's distribution a drafted token was drawn from, shape [V]
  gamma    draft length: tokens proposed per drafting operation
  alpha    acceptance rate: accepted / tested drafted tokens

Randomness is keyed, not streamed. The only door is ``coins.choose``, which inverts a CDF at
u(seed, request, position, role, index). Nobody sees u, so a test can hold it as an interval and
walk every outcome of a method exactly (``speclib.exact``).

This module does not know time, devices or models.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .errors import SpeclibError

ROLES = ("draft", "accept", "residual", "target")


@dataclass(frozen=True)
class Sampler:
    """Logits to a distribution; greedy is one-hot, so verification never asks for the mode.

    ``temperature`` >= 0 (0 is greedy), ``top_k`` >= 0 (0 is off), ``top_p`` in (0, 1]. Applied in
    that order, as transformers does, and the same way to the draft and to the target.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self):
        if not self.temperature >= 0:
            raise SpeclibError(f"temperature is {self.temperature}: give 0 (greedy) or more")
        if self.top_k < 0 or int(self.top_k) != self.top_k:
            raise SpeclibError(f"top_k is {self.top_k}: give 0 (off) or a positive integer")
        if not 0 < self.top_p <= 1:
            raise SpeclibError(f"top_p is {self.top_p}: give a number above 0, up to 1 (off)")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """``logits`` [n, V] (float32 or float64) -> probabilities [n, V] of the same dtype."""
        if self.greedy:
            probabilities = np.zeros_like(logits)
            probabilities[np.arange(len(logits)), logits.argmax(-1)] = 1
            return probabilities
        smallest = np.finfo(logits.dtype).tiny              # below it, division would give 0 / 0
        with np.errstate(over="ignore"):
            scaled = logits - logits.max(-1, keepdims=True)
            scaled /= logits.dtype.type(max(self.temperature, smallest))
        if 0 < self.top_k < scaled.shape[-1]:
            kth = np.partition(scaled, -self.top_k, axis=-1)[:, -self.top_k, None]
            scaled = np.where(scaled < kth, -np.inf, scaled)
        probabilities = np.exp(scaled)
        probabilities /= probabilities.sum(-1, keepdims=True)
        return _nucleus(probabilities, self.top_p) if self.top_p < 1 else probabilities


def _nucleus(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """Keeps the fewest most probable tokens whose mass reaches ``top_p``, renormalised."""
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, -1)
    ranked[np.cumsum(ranked, -1) - ranked >= top_p] = 0
    kept = np.empty_like(ranked)
    np.put_along_axis(kept, order, ranked, -1)
    return kept / kept.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Coins:
    """Keyed randomness of one request: the same key gives the same answer, anywhere, in any order.

    ``index`` tells siblings apart (candidates, branches, drafters): they never share a key.
    """

    seed: int = 0
    request: int = 0

    def choose(self, dist: np.ndarray, position: int, role: str, index: int = 0) -> int:
        """Draws from ``dist`` [V], which sums to one; ``position`` is the token's in the text."""
        best = int(dist.argmax())
        if dist[best] == 1:                     # one outcome: no coin is needed
            return best
        return invert(dist, self._u(position, role, index))

    def _u(self, position: int, role: str, index: int) -> float:
        key = f"{self.seed},{self.request},{position},{role},{index}".encode()
        word = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
        return (word >> 11) * 2.0**-53


def invert(dist: np.ndarray, u: float) -> int:
    """The smallest token whose cumulative mass exceeds ``u``; never one of zero mass."""
    mass = np.cumsum(dist, dtype=np.float64)
    last = mass[-1]
    return int(min(mass.searchsorted(u * last, side="right"), mass.searchsorted(last)))


class Drafted(NamedTuple):
    """A drafted token, the exact q it was drawn from, and where in the trace it came from."""

    token: int
    q: np.ndarray
    op: int = -1
    index: int = 0


class Verdict(NamedTuple):
    """``accepted``: drafted tokens that passed. ``extra``: one more token, or none: the residual's
    after a rejection, the target's own (the bonus) when all passed and a row was left over."""

    accepted: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.accepted + self.extra


def ids(drafted) -> tuple[int, ...]:
    """The token ids of drafted tokens."""
    return tuple(d.token for d in drafted)


def certain(tokens, vocab: int) -> np.ndarray:
    """The q [n, V] of tokens that were not drawn but taken from somewhere: one-hot rows."""
    rows = np.zeros((len(tokens), vocab), np.float32)
    rows[np.arange(len(tokens)), list(tokens)] = 1
    return rows


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """norm(max(0, p - q)) [V]; p itself where that sum underflows.

    Source: Leviathan et al. 2023; PEARL section 2.
    """
    left = np.maximum(p.astype(np.float64) - q, 0)
    total = left.sum()
    return left / total if total > 0 else p


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
            return Verdict(accepted, (world.coins.choose(residual(p, q), position, "residual"),))
        world.mark(drafted_token, "accepted")
        accepted += (token,)
    if len(rows) <= len(accepted):
        return Verdict(accepted, ())
    position = start + len(accepted)
    return Verdict(accepted, (world.coins.choose(rows[len(accepted)], position, "target"),))


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
