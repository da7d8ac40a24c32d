"""Samplers, coins and drafted tokens: everything that chance decides.

Symbols, defined once for all methods:
  p        the target's distribution over the next token, shape [V]
  q        the draft's distribution that a drafted token was drawn from, shape [V]
  gamma    draft length: tokens proposed per drafting operation
  alpha    acceptance rate: accepted drafted tokens over tested ones
  t_draft, t_target   how long a forward pass of the draft or target takes, in seconds
  c        cost ratio: t_target / t_draft

Randomness is keyed, not streamed. The only way to draw is ``coins.choose``. It inverts
the distribution's cumulative sum at a number u, which depends only on (seed, request,
position, role, index). No other code sees u. So a test can replace the number by an
interval and enumerate every outcome exactly (``speclib.worlds.enumerator``).

This module uses no clock, device or model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from speclib.arguments import Number

from .penalties import Penalties
from .settings import require_counts, require_number
from .text import AnyText
from .text import Tokens as Tokens

Row: TypeAlias = npt.NDArray[np.floating[Any]]  # one distribution, shape [V]
Rows: TypeAlias = npt.NDArray[np.floating[Any]]  # distributions, shape [n, V]

ENTRIES_AT_ONCE = 1 << 16  # logits that are shaped together
# Tried one by one: shares of the largest mass, to find the nucleus, and distances from
# the best score, to find the top_k-th.
THRESHOLDS = (*(2.0**-power for power in range(2, 26, 2)), 0.0)
DISTANCES = (2, 4, 8, 16, 32)

LARGE_VOCAB = 8192  # tokens; a distribution this large is summed in blocks
BLOCK = 1024  # tokens


@dataclass(frozen=True)
class Sampler:
    """Turns logits into a distribution.

    Greedy decoding is a one-hot distribution. So code that tests or draws tokens never
    has to check the mode.

    ``temperature``: 0 (greedy) or more. ``top_k``: 0 (off) or more. ``top_p``: above 0,
    up to 1 (off). They are applied in this order, as in transformers, and to the
    draft's logits exactly as to the target's. ``penalties`` are applied before them.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    penalties: Penalties = Penalties()

    def __post_init__(self) -> None:
        require_number("temperature", self.temperature, Number(least=0))
        require_counts(0, top_k=self.top_k)
        require_number("top_p", self.top_p, Number(above=0, most=1))

    @property
    def greedy(self) -> bool:
        """Whether it always chooses the likeliest token."""
        return self.temperature == 0

    def __call__(
        self, logits: Rows, texts: Callable[[], Sequence[AnyText]] | None = None
    ) -> Rows:
        """Probabilities [n, V] of ``logits`` [n, V], with the same dtype.

        ``texts``: returns the text that each row follows. Only penalties need it.

        With a large vocabulary only a few rows are shaped at a time, so that the values
        just written are still in the processor's cache when they are read.
        """
        if self.penalties:
            assert texts is not None, "penalties depend on the text before a row"
            logits = self.penalties.applied(logits, texts())
        if self.greedy:
            likeliest = logits.argmax(-1)
            return certain(likeliest, logits.shape[-1]).astype(logits.dtype, copy=False)

        probabilities = np.empty(logits.shape, logits.dtype)
        rows_at_once = max(1, ENTRIES_AT_ONCE // logits.shape[-1])
        for first in range(0, len(logits), rows_at_once):
            some = slice(first, first + rows_at_once)
            self._shape(logits[some], probabilities[some])
        return probabilities

    def _shape(self, logits: Rows, probabilities: Rows) -> None:
        """Writes the ``probabilities`` [n, V] of ``logits`` [n, V]."""
        self._temper(logits, probabilities)
        if 0 < self.top_k < probabilities.shape[-1]:
            for row in probabilities:
                _ban_all_but_top_k(row, self.top_k)
        np.exp(probabilities, out=probabilities)
        probabilities /= probabilities.sum(-1, keepdims=True)
        if self.top_p < 1:
            for row in probabilities:
                _keep_nucleus(row, self.top_p)

    def _temper(self, logits: Rows, scores: Rows) -> None:
        """Writes logits / temperature, each row shifted so that its largest is 0."""
        smallest = np.finfo(logits.dtype).tiny  # below it, division would give 0 / 0
        temperature = max(float(self.temperature), float(smallest))
        with np.errstate(over="ignore"):
            np.subtract(logits, logits.max(-1, keepdims=True), out=scores)
            if temperature != 1:
                scores /= logits.dtype.type(temperature)


def _ban_all_but_top_k(row: Row, top_k: int) -> None:
    """Bans every score below the ``top_k``-th best; ties with it stay.

    The best score is 0. If enough scores are near it, only they are searched.
    """
    candidates = row
    for distance in DISTANCES:
        is_near = row > -distance
        if np.count_nonzero(is_near) >= top_k:
            candidates = np.compress(is_near, row)
            break
    kth_best = np.partition(candidates, -top_k)[-top_k]
    np.copyto(row, -np.inf, where=row < kth_best)


def _keep_nucleus(row: Row, top_p: float) -> None:
    """Keeps the fewest likeliest tokens whose mass reaches ``top_p``, renormalised.

    Among equally likely tokens, the smallest ids stay.
    """
    masses = _nucleus_masses(row, top_p)
    smallest = masses[-1]
    is_candidate = row >= smallest
    row *= is_candidate

    surplus = np.count_nonzero(is_candidate) - len(masses)
    if surplus:
        equal = np.flatnonzero(row == smallest)
        row[equal[len(equal) - surplus :]] = 0
    row /= row.sum()


def _nucleus_masses(row: Row, top_p: float) -> Row:
    """The masses of the tokens in ``row`` [V] that ``top_p`` keeps, in falling order.

    In that order a token is kept if the mass before it is below ``top_p``.

    Only the masses above a threshold are sorted. The threshold is lowered until the
    last of these masses is not kept, or until it is 0. The result equals that of
    sorting the whole row, to the last bit:

    - Masses above the threshold come before all others. So they are the beginning of
      the whole order, and since each cumulative sum adds one mass to the previous sum,
      their sums are the beginning of the whole row's sums.
    - Along the order the sums never fall and the masses never rise. So a sum minus its
      own mass never falls either: rounding never reverses the order of two numbers.
      After the first token that is not kept, no other is kept.
    - The order of equally likely tokens changes no sum.
    """
    largest = row.max()
    for share in THRESHOLDS:
        masses = np.compress(row > largest * share, row)
        is_all = share == 0
        if masses.sum() < top_p and not is_all:
            continue  # too few: sorting them is useless

        falling = np.sort(masses)[::-1]
        mass_before = np.cumsum(falling) - falling
        if is_all or mass_before[-1] >= top_p:
            break
    nucleus: Row = falling[mass_before < top_p]
    return nucleus


class CoinTosser(Protocol):
    """The randomness that methods see: real coins, or a test's."""

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """Draws a token from ``dist``; see ``Coins.choose``."""
        ...


@dataclass(frozen=True)
class Coins:
    """The keyed randomness of one request.

    The same key gives the same answer in any process, at any time and in any order.
    """

    seed: int = 0
    request: int = 0

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """Draws a token from ``dist`` [V], which sums to one.

        ``position``: the token's position in the text. ``role``: "draft", "accept",
        "residual" or "target". ``index`` distinguishes siblings (candidates, sequences,
        drafters): two decisions never share a key.
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
    """The first token whose cumulative mass exceeds ``u``; never a token without mass.

    ``dist``: [V], not negative. The cumulative sum is computed in float64, token by
    token. A long distribution is summed in blocks, which gives the same token.
    """
    if len(dist) >= LARGE_VOCAB:
        token = _invert_by_blocks(dist, u)
        if token is not None:
            return token

    cumulative = np.cumsum(dist, dtype=np.float64)
    whole = cumulative[-1]
    found = cumulative.searchsorted(u * whole, side="right")
    last_with_mass = cumulative.searchsorted(whole)
    return int(min(found, last_with_mass))


def _invert_by_blocks(dist: Row, u: float) -> int | None:
    """Like ``invert``; None if the result depends on how sums are rounded.

    It sums whole blocks, and single tokens only in the block with the result.

    A float64 sum of V numbers that are not negative is off by at most V * 2**-53 of
    the sum, in any order of addition. So an edge between two tokens here and in
    ``invert`` differs by at most twice that. ``u`` times the whole sum differs by the
    same plus a little rounding. If ``u`` is farther than 8 * V * 2**-53 from both edges
    of a token, both functions return it. It nearly always is: with V = 152,000 this
    margin is 1e-10.
    """
    starts = np.arange(0, len(dist), BLOCK)
    until_block = np.cumsum(np.add.reduceat(dist, starts, dtype=np.float64))
    whole = float(until_block[-1])
    wanted = u * whole
    block = int(until_block.searchsorted(wanted, side="right"))
    if block == len(starts):
        return None

    before = float(until_block[block - 1]) if block else 0.0
    first = block * BLOCK
    edges = before + np.cumsum(dist[first : first + BLOCK], dtype=np.float64)
    nth = int(edges.searchsorted(wanted, side="right"))
    if nth == len(edges):
        return None

    low = float(edges[nth - 1]) if nth else before
    high = float(edges[nth])
    rounding = 8 * len(dist) * 2.0**-53 * whole
    is_clear = low + rounding < wanted < high - rounding
    return first + nth if is_clear else None


class Drafted(NamedTuple):
    """A drafted token, and the exact q it was drawn from.

    ``operation`` and ``nth`` locate it in the trace: the id of the event, and the
    token's index in that event.
    """

    token: int
    q: Row
    operation: int = -1
    nth: int = 0


def ids(drafted: Iterable[Drafted]) -> Tokens:
    """The token ids of drafted tokens."""
    return tuple(draft.token for draft in drafted)


def certain(tokens: Sequence[int] | npt.NDArray[np.integer[Any]], vocab: int) -> Rows:
    """One-hot distributions [n, V]: the q of tokens that were not drawn at random."""
    rows = np.zeros((len(tokens), vocab), np.float32)
    rows[np.arange(len(tokens)), list(tokens)] = 1
    return rows


def residual(p: Row, q: Row) -> Row:
    """norm(max(0, p - q)) [V], or p itself if the sum underflows.

    Source: Leviathan et al. 2023; PEARL section 2.
    """
    difference = np.subtract(p, q, dtype=np.float64)
    np.maximum(difference, 0, out=difference)
    total = difference.sum()
    if not total > 0:
        return p
    difference /= total
    return difference


def scaled(row: Row, likeliest: int, factor: float) -> Row:
    """``row`` [V], its top ``likeliest`` tokens scaled by ``factor``, renormalised.

    Among equally likely tokens, the smallest ids come first.
    """
    if factor == 1 or likeliest == 0:
        return row
    changed = row.copy()
    changed[np.argsort(-row, kind="stable")[:likeliest]] *= factor
    changed /= changed.sum()
    return changed
