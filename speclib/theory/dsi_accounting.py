"""What a run of speculative inference (SI) or DSI costs, by the text's rules and by a simulator's.

The DSI paper never runs on several devices: Figures 1 and 6 and Table 1 come from rules of charge.
Here they are as formulas over grids, so that one can see what a printed ratio owes to the rules.
Time is in target passes: plain decoding takes 1 per token, the drafter ``share`` (at most 1) per
draft. Each draft is right with probability ``alpha``, independently; ``lookahead`` drafts form a
block. ``share`` and ``alpha`` are floats or arrays that broadcast, results have their shape.
Knows no method, world or trace, and no queue: passes never wait for a server. Fewer servers than
that, communication and first tokens are left to the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from speclib.errors import SpeclibError


# -- the text's rules ---------------------------------------------------------------------------
def si_rounds(alpha, lookahead, tokens: int) -> np.ndarray:
    """Expected rounds of SI for ``tokens``; ``lookahead`` is an int or an array that broadcasts.

    A round gives the right drafts before the first wrong one, at most ``lookahead``, and one token
    of the target. Exact: V(n) = 1 + sum_j P(j right) V(n - j - 1). Source: appendix D.1's listing.
    """
    alpha, lookahead = np.broadcast_arrays(np.asarray(alpha, float), lookahead)
    need = np.zeros((tokens + 1, *alpha.shape))  # V
    whole, rejected = (
        alpha**lookahead,
        np.zeros(alpha.shape),
    )  # sum_j<lookahead a^j V(n-j-1)
    for n in range(1, tokens + 1):
        after = np.maximum(n - 1 - lookahead, 0)
        block = whole * np.take_along_axis(need, after[None], 0)[0]
        rejected = alpha * rejected + need[n - 1] - block
        need[n] = 1 + (1 - alpha) * rejected + block
    return need[tokens]


def si_sampled(
    share, alpha, lookahead, tokens: int, repeats: int = 5, seed=0
) -> np.ndarray:
    """Mean time of ``repeats`` random runs of SI, drawn anew for every cell. ``seed`` is an int or
    a numpy Generator. Source: appendix D.1's listing, the accepted number geometric, cut at
    ``lookahead``; the last round is charged in full."""
    rng = np.random.default_rng(seed)
    shape = np.broadcast(share, alpha, lookahead).shape
    with np.errstate(divide="ignore"):
        scale = 1 / np.maximum(
            -np.log(alpha), 1e-300
        )  # of an exponential; endless at alpha 1
    scale = np.broadcast_to(scale, (repeats, *shape)).ravel()
    most = np.broadcast_to(np.asarray(lookahead, float), (repeats, *shape)).ravel()
    got, rounds = np.zeros(most.size), np.zeros(most.size)
    going = np.arange(most.size)
    while going.size:
        times = rng.standard_exponential(going.size) * scale[going]
        right = np.floor(
            np.minimum(times, most[going])
        )  # an exponential's floor is geometric
        got[going] += right + 1
        rounds[going] += 1
        going = going[got[going] < tokens]
    return rounds.reshape(repeats, *shape).mean(0) * (lookahead * np.asarray(share) + 1)


def dsi_bound(share, alpha, tokens: int) -> np.ndarray:
    """Expected time of DSI with lookahead 1 and a server for every pass: each right draft takes
    the drafter's time, each wrong one and the last token the target's. Source: Proposition 1."""
    # t1 p (N - 1) + t2 ((1 - p)(N - 1) + 1), in an order that rounding cannot lift above N
    return tokens - np.asarray(alpha, float) * (1 - np.asarray(share, float)) * (
        tokens - 1
    )


# -- one rule at a time --------------------------------------------------------------------------
@dataclass(frozen=True)
class Accounting:
    """Rules of charge; the defaults are the text's: D.1's listing, DSI as Theorem 2 argues it.

    Each rule acts on SI, on DSI or on both, and can be switched by itself (``switched``).
    """

    corrected: bool = True  # both: the target's token at a rejection counts
    bonus: bool = True  # SI: the target's token after a block that is all right counts
    restart_pass: bool = (
        False  # SI: a blocking target pass at the start and at each rejection
    )
    late: bool = False  # DSI: a block's pass judges its drafts, gives no token beyond
    beside: bool = True  # DSI: one server always works from the verified text alone
    longest: int | None = None  # both: more right drafts in a row than this never occur
    unverified_end: bool = (
        False  # both: the clock stops at any pass once enough drafts will do
    )
    most_servers: int | None = None  # DSI: lookaheads that need more are left out


LISTING = Accounting()
# The published thread-pool simulator, dsi/online/run/simulation_core.py at commit 91ab8b9. Left
# out: first-token times, and reseeding by the second, which repeats draws.
SIMULATOR = Accounting(
    corrected=False,
    bonus=False,
    restart_pass=True,
    late=True,
    beside=False,
    longest=20,
    unverified_end=True,
    most_servers=7,
)


def switched(start: Accounting, to: Accounting) -> dict[str, Accounting]:
    """rule -> ``start`` with that one rule as in ``to``, for the rules in which they differ."""
    return {
        f.name: replace(start, **{f.name: getattr(to, f.name)})
        for f in fields(start)
        if getattr(start, f.name) != getattr(to, f.name)
    }


def servers_needed(share, lookahead: int) -> np.ndarray:
    """Target servers that DSI can use at most: ceil(1 / (lookahead * share)). Source: 3.1."""
    return np.ceil(1 / (lookahead * np.asarray(share, float)) - 1e-9)  # 4.9 / 0.1 is 49


def si_time(
    share, alpha, lookahead: int, tokens: int, books: Accounting = LISTING
) -> np.ndarray:
    """Expected time of SI under ``books``; by the listing it is si_rounds times a round."""

    def run(right: int, left: int):
        whole = right // lookahead
        gained, blocks = right + books.bonus * whole + books.corrected, whole + 1
        if books.unverified_end:
            if gained > left:
                return gained, 1.0 if books.restart_pass else lookahead * share + 1
        else:
            blocks = min(blocks, math.ceil(left / (lookahead + books.bonus)))
        return gained, blocks * (lookahead * share + 1) + books.restart_pass

    return _mean(run, alpha, tokens, books)


def dsi_time(
    share, alpha, lookahead: int, tokens: int, books: Accounting = LISTING
) -> np.ndarray:
    """Expected time of DSI under ``books``, a server for every pass; lookahead 1: Proposition 1.

    The pass on i blocks of drafts starts when they are there, so the token after n right drafts
    comes with the pass on ceil(n / lookahead) blocks, or, ``beside``, one by one after the whole
    blocks among the n. Drafts beyond the last token are not waited for.
    """

    def run(right: int, left: int):
        gained, room = right + books.corrected, left - books.corrected
        if books.unverified_end:
            if gained > left:
                return gained, 1.0  # the pass on no drafts is the first to return
            room = math.inf
        right = min(right, room)
        whole, rest = divmod(right, lookahead)
        waits = min((whole + bool(rest or books.late)) * lookahead, room) * share
        if books.beside:
            waits = np.minimum(waits, whole * lookahead * share + rest + books.late)
            waits = np.minimum(waits, right)
        return gained, waits + 1

    return _mean(run, alpha, tokens, books)


def speedup(
    share,
    alpha,
    tokens: int = 50,
    books: Accounting = LISTING,
    lookaheads: Sequence[int] = (1, 5, 10),
) -> np.ndarray:
    """DSI over SI, each at its best of ``lookaheads``. Source: Table 1's protocol, section 4.

    Raises SpeclibError where every lookahead of DSI needs more servers than ``books`` allow."""
    most = math.inf if books.most_servers is None else books.most_servers
    si = np.min([si_time(share, alpha, k, tokens, books) for k in lookaheads], 0)
    dsi = np.min(
        [
            np.where(
                servers_needed(share, k) <= most,
                dsi_time(share, alpha, k, tokens, books),
                np.inf,
            )
            for k in lookaheads
        ],
        0,
    )
    if np.isinf(dsi).any():
        raise SpeclibError(
            f"no lookahead of {list(lookaheads)} needs at most {most} servers for a "
            f"drafter at {np.min(share):g} of the target's time: give a longer one"
        )
    return si / dsi


def _mean(run: Callable, alpha, tokens: int, books: Accounting) -> np.ndarray:
    """Expected time for ``tokens``, by recurrence over the tokens left; ``run(right, left)`` gives
    the tokens gained and the time of ``right`` right drafts up to the next rejection."""
    alpha = np.asarray(alpha, float)
    if not books.corrected and (alpha == 0).any():
        raise SpeclibError(
            "alpha is 0 and corrected is False: no token ever counts; leave one out"
        )
    mean = [0.0] * (tokens + 1)
    for left in range(0 if books.unverified_end else 1, tokens + 1):
        last = min(left + 1, books.longest or left + 1)
        total = 0.0
        for right in range(last + 1):
            gained, time = run(right, left)
            chance = alpha**right * (1 if right == last else 1 - alpha)
            total = total + chance * (
                time + (mean[left - gained] if 0 < gained <= left else 0)
            )
        mean[left] = (
            total if books.corrected else total / alpha
        )  # with no draft right: again
    return np.asarray(mean[tokens])
