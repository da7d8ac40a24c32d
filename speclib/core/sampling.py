"""Samplers, coins and drafted tokens: everything here that chance decides.

Symbols, spelled once for every method:
  p        the target's distribution of the next token, shape [V]
  q        the draft's distribution that a drafted token was drawn from, shape [V]
  gamma    draft length: tokens proposed per drafting operation
  alpha    acceptance rate: accepted drafted tokens over tested ones
  t_draft, t_target   seconds of one forward pass of the draft, of the target
  c        cost ratio: t_target / t_draft

Randomness is keyed, not streamed. The only door is ``coins.choose``: it inverts the
distribution's cumulative sum at a number u that depends on (seed, request, position,
role, index) alone. Nobody else sees u. So a test can hold u as an interval in place of
a number and walk every outcome of a method exactly (``speclib.worlds.enumerator``).

Knows no time, device or model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from speclib.errors import BadValue

Tokens: TypeAlias = tuple[int, ...]  # token ids, in the order of the text
Row: TypeAlias = npt.NDArray[np.floating[Any]]  # one distribution, shape [V]
Rows: TypeAlias = npt.NDArray[np.floating[Any]]  # distributions, shape [n, V]

ROLES = ("draft", "accept", "residual", "target")


@dataclass(frozen=True)
class Sampler:
    """Turns logits into a distribution.

    Greedy decoding is a distribution too, one that is certain of its token (one-hot).
    So nothing that tests or draws tokens has to ask which mode it is in.

    ``temperature``: 0 (greedy) or more. ``top_k``: 0 (off) or more. ``top_p``: above 0,
    up to 1 (off). They are applied in this order, as transformers does, and to the
    draft's logits exactly as to the target's.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not self.temperature >= 0:
            raise BadValue(
                f"temperature is {self.temperature!r}: give 0 (greedy) or more"
            )
        if not _is_count(self.top_k):
            raise BadValue(
                f"top_k is {self.top_k!r}: give 0 (off) or a positive integer"
            )
        if not _is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise BadValue(
                f"top_p is {self.top_p!r}: give a number above 0, up to 1 (off)"
            )

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature == 0

    def __call__(self, logits: Rows) -> Rows:
        """Probabilities [n, V] of ``logits`` [n, V], of the same dtype."""
        if self.greedy:
            return _one_hot(logits)

        scores = self._tempered(logits)
        if 0 < self.top_k < scores.shape[-1]:
            scores = _only_top_k(scores, self.top_k)
        probabilities = np.exp(scores)
        probabilities /= probabilities.sum(-1, keepdims=True)
        if self.top_p < 1:
            probabilities = _nucleus(probabilities, self.top_p)
        return probabilities

    def _tempered(self, logits: Rows) -> Rows:
        """Logits over the temperature, moved so that each row's largest is 0."""
        smallest = np.finfo(logits.dtype).tiny  # below it, division would give 0 / 0
        with np.errstate(over="ignore"):
            scores: Rows = logits - logits.max(-1, keepdims=True)
            scores /= logits.dtype.type(max(float(self.temperature), float(smallest)))
        return scores


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and value >= 0  # type: ignore[operator]


def _one_hot(logits: Rows) -> Rows:
    """All mass on each row's first largest entry."""
    probabilities = np.zeros_like(logits)
    probabilities[np.arange(len(logits)), logits.argmax(-1)] = 1
    return probabilities


def _only_top_k(scores: Rows, top_k: int) -> Rows:
    """Bans every token below the ``top_k``-th best; ties with it stay."""
    kth_best = np.partition(scores, -top_k, axis=-1)[:, -top_k, None]
    return np.where(scores < kth_best, -np.inf, scores)


def _nucleus(probabilities: Rows, top_p: float) -> Rows:
    """Keeps the fewest likeliest tokens whose mass reaches ``top_p``, renormalised."""
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, -1)
    mass_before = np.cumsum(ranked, -1) - ranked
    ranked[mass_before >= top_p] = 0
    kept = np.empty_like(ranked)
    np.put_along_axis(kept, order, ranked, -1)
    kept /= kept.sum(-1, keepdims=True)
    return kept


class CoinTosser(Protocol):
    """What methods see of randomness: real coins, or a test's."""

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """Draws a token from ``dist``; see ``Coins.choose``."""
        ...


@dataclass(frozen=True)
class Coins:
    """Keyed randomness of one request.

    The same key gives the same answer in any process, at any time and in any order.
    """

    seed: int = 0
    request: int = 0

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """Draws a token from ``dist`` [V], which sums to one.

        ``position``: the place in the text that the token is for. ``role``: one of
        ``ROLES``. ``index`` tells siblings apart (candidates, sequences, drafters):
        two decisions never share a key.
        """
        likeliest = int(dist.argmax())
        if dist[likeliest] == 1:  # only one outcome: no coin is needed
            return likeliest
        return invert(dist, self._u(position, role, index))

    def _u(self, position: int, role: str, index: int) -> float:
        """A number in [0, 1) that depends on the key alone."""
        key = f"{self.seed},{self.request},{position},{role},{index}".encode()
        digest = hashlib.blake2b(key, digest_size=8).digest()
        word = int.from_bytes(digest, "little")
        return (word >> 11) * 2.0**-53  # 53 bits: a float64's precision


def invert(dist: Row, u: float) -> int:
    """The first token whose cumulative mass exceeds ``u``; never one without mass."""
    cumulative = np.cumsum(dist, dtype=np.float64)
    whole = cumulative[-1]
    token = cumulative.searchsorted(u * whole, side="right")
    last_with_mass = cumulative.searchsorted(whole)
    return int(min(token, last_with_mass))


class Drafted(NamedTuple):
    """A drafted token, and the exact q it was drawn from.

    ``operation`` and ``place`` say where the trace shows it: the id of the event, and
    where in it the token stands.
    """

    token: int
    q: Row
    operation: int = -1
    place: int = 0


def ids(drafted: Iterable[Drafted]) -> Tokens:
    """The token ids of drafted tokens."""
    return tuple(draft.token for draft in drafted)


def certain(tokens: Sequence[int], vocab: int) -> Rows:
    """The q [n, V] of tokens that were not drawn but taken from somewhere: one-hot."""
    rows = np.zeros((len(tokens), vocab), np.float32)
    rows[np.arange(len(tokens)), list(tokens)] = 1
    return rows


def residual(p: Row, q: Row) -> Row:
    """norm(max(0, p - q)) [V], or p itself where that sum underflows.

    Source: Leviathan et al. 2023; PEARL section 2.
    """
    difference = np.maximum(p.astype(np.float64) - q, 0)
    total = difference.sum()
    return difference / total if total > 0 else p
