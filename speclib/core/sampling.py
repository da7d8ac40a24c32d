"""Tokens and chance: samplers, coins, drafted tokens and their verification.

Symbols, spelled once for every method:
  p        the target's distribution of the next token, shape [V]
  q        the draft's distribution a drafted token was drawn from, shape [V]
  gamma    draft length: tokens proposed per drafting operation
  alpha    acceptance rate: accepted / tested drafted tokens

Randomness is keyed, not streamed. The only door is ``coins.choose``, which inverts a CDF at
u(seed, request, position, role, index). Nobody sees u, so a test can hold it as an interval and
walk every outcome of a method exactly (``speclib.worlds.enumerator``).

This module does not know time, devices or models.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from speclib.errors import SpeclibError

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
            raise SpeclibError(
                f"temperature is {self.temperature}: give 0 (greedy) or more"
            )
        if self.top_k < 0 or int(self.top_k) != self.top_k:
            raise SpeclibError(
                f"top_k is {self.top_k}: give 0 (off) or a positive integer"
            )
        if not 0 < self.top_p <= 1:
            raise SpeclibError(
                f"top_p is {self.top_p}: give a number above 0, up to 1 (off)"
            )

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """``logits`` [n, V] (float32 or float64) -> probabilities [n, V] of the same dtype."""
        if self.greedy:
            probabilities = np.zeros_like(logits)
            probabilities[np.arange(len(logits)), logits.argmax(-1)] = 1
            return probabilities
        smallest = np.finfo(logits.dtype).tiny  # below it, division would give 0 / 0
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
        if dist[best] == 1:  # one outcome: no coin is needed
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
