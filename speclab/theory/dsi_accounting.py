"""The time of speculative inference (SI) and DSI under different accounting rules.

The DSI paper never runs on several devices. Its Figures 1 and 6 and its Table 1 follow
from accounting rules, stated in its text and in a published simulator. Here the rules
are formulas over grids, which show how much of a printed ratio is due to each rule.

Times are in target passes: plain decoding takes 1 per token, the drafter ``share`` (at
most 1) per draft. Each draft is right with probability ``alpha``, independently;
``lookahead`` drafts form a block. ``share`` and ``alpha`` are floats or arrays that
broadcast, and results have the shape of the broadcast.

This module uses no method, world or trace. Passes never wait for a server here; the
engine simulates fewer servers, communication and first tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

from speclib.errors import BadValue

Grid: TypeAlias = float | np.ndarray  # one number, or one number per grid point


# -- the rules in the paper's text -----------------------------------------------------
def si_rounds(alpha: Grid, lookahead: Grid, tokens: int) -> np.ndarray:
    """Expected rounds of SI for ``tokens``; ``lookahead`` is an int or an array.

    A round commits the right drafts before the first wrong one, at most ``lookahead``,
    and one token from the target. Let V(n) be the expected number of rounds for n
    tokens, and j the number of right drafts in the first round. Exactly::

        V(n) = 1 + sum over j of P(j) V(n - j - 1)

    Source: appendix D.1's listing.
    """
    alpha, lookahead = np.broadcast_arrays(np.asarray(alpha, float), lookahead)
    expected = np.zeros((tokens + 1, *alpha.shape))  # V
    all_right = alpha**lookahead
    rejected = np.zeros(alpha.shape)  # sum over j < lookahead of alpha^j V(n - j - 1)
    for n in range(1, tokens + 1):
        # A block in which all drafts are right leaves this many tokens to write.
        tokens_left = np.maximum(n - 1 - lookahead, 0)
        after_block = np.take_along_axis(expected, tokens_left[None], 0)[0]
        block = all_right * after_block
        rejected = alpha * rejected + expected[n - 1] - block
        expected[n] = 1 + (1 - alpha) * rejected + block
    rounds: np.ndarray = expected[tokens]
    return rounds


def si_sampled(
    share: Grid,
    alpha: Grid,
    lookahead: Grid,
    tokens: int,
    repeats: int = 5,
    seed: int | np.random.Generator = 0,
) -> np.ndarray:
    """Mean time of ``repeats`` random runs of SI.

    Every grid point has its own independent runs. The number of accepted drafts in a
    round is geometric, cut at ``lookahead``; the last round is charged in full. Source:
    appendix D.1's listing.
    """
    rng = np.random.default_rng(seed)
    shape = np.broadcast(share, alpha, lookahead).shape
    runs = (repeats, *shape)

    # The floor of an exponential variable is geometric; at alpha 1 its scale is
    # infinite.
    with np.errstate(divide="ignore"):
        scale = 1 / np.maximum(-np.log(alpha), 1e-300)
    scale = np.broadcast_to(scale, runs).ravel()
    most = np.broadcast_to(np.asarray(lookahead, float), runs).ravel()

    written = np.zeros(most.size)
    rounds = np.zeros(most.size)
    unfinished = np.arange(most.size)
    while unfinished.size:
        times = rng.standard_exponential(unfinished.size) * scale[unfinished]
        right = np.floor(np.minimum(times, most[unfinished]))
        written[unfinished] += right + 1
        rounds[unfinished] += 1
        unfinished = unfinished[written[unfinished] < tokens]

    mean_rounds = rounds.reshape(runs).mean(0)
    mean_time: np.ndarray = mean_rounds * (lookahead * np.asarray(share) + 1)
    return mean_time


def dsi_bound(share: Grid, alpha: Grid, tokens: int) -> np.ndarray:
    """Expected time of DSI with lookahead 1 and a server for every pass.

    Each right draft takes as long as a drafter's pass; each wrong draft, and the last
    token, as long as a target's. Source: Proposition 1,
    t1 p (N - 1) + t2 ((1 - p)(N - 1) + 1).
    """
    # In this order of operations, rounding cannot lift the result above ``tokens``.
    saved = np.asarray(alpha, float) * (1 - np.asarray(share, float))
    expected: np.ndarray = tokens - saved * (tokens - 1)
    return expected


# -- one rule at a time ----------------------------------------------------------------
@dataclass(frozen=True)
class Accounting:
    """Accounting rules; the defaults are the rules in the paper's text.

    For SI these are D.1's listing, and for DSI the argument of Theorem 2. Each rule
    applies to SI, to DSI or to both, and can be switched separately (``switched``).

    corrected       both: the target's token at a rejection counts
    bonus           SI: the target's token after a block without a rejection counts
    restart_pass    SI: a blocking target pass at the start and at each rejection
    late            DSI: a block's pass tests its drafts but adds no token after them
    plain_server    DSI: one server always continues the verified text, without drafts
    longest         both: the longest possible run of right drafts
    unverified_end  both: the clock stops at any pass once there are enough drafts
    most_servers    DSI: lookaheads that need more servers than this are left out
    """

    corrected: bool = True
    bonus: bool = True
    restart_pass: bool = False
    late: bool = False
    plain_server: bool = True
    longest: int | None = None
    unverified_end: bool = False
    most_servers: int | None = None


LISTING = Accounting()

# The published thread-pool simulator, dsi/online/run/simulation_core.py at commit
# 91ab8b9. We leave out its first-token times. It also reseeds every second, and so
# repeats random numbers; we do not.
SIMULATOR = Accounting(
    corrected=False,
    bonus=False,
    restart_pass=True,
    late=True,
    plain_server=False,
    longest=20,
    unverified_end=True,
    most_servers=7,
)


def switched(start: Accounting, to: Accounting) -> dict[str, Accounting]:
    """For each rule that differs, by name: ``start``, but with this rule of ``to``."""
    accountings = {}
    for rule in fields(start):
        value = getattr(to, rule.name)
        if getattr(start, rule.name) != value:
            accountings[rule.name] = replace(start, **{rule.name: value})
    return accountings


def servers_needed(share: Grid, lookahead: int) -> np.ndarray:
    """The most target servers that DSI can use: ceil(1 / (lookahead * share)).

    Source: section 3.1.
    """
    servers = 1 / (lookahead * np.asarray(share, float))
    return np.ceil(servers - 1e-9)  # so that 4.9 / 0.1 is 49, despite rounding


def si_time(
    share: Grid,
    alpha: Grid,
    lookahead: int,
    tokens: int,
    rules: Accounting = LISTING,
) -> np.ndarray:
    """Expected time of SI under ``rules``; LISTING charges ``si_rounds`` rounds."""
    round_time = lookahead * share + 1

    def run(right: int, left: int) -> tuple[int, Grid]:
        whole_blocks = right // lookahead
        gained = right + rules.bonus * whole_blocks + rules.corrected
        blocks = whole_blocks + 1
        if not rules.unverified_end:
            blocks = min(blocks, math.ceil(left / (lookahead + rules.bonus)))
        elif gained > left:
            return gained, 1.0 if rules.restart_pass else round_time
        return gained, blocks * round_time + rules.restart_pass

    return _mean_time(run, alpha, tokens, rules)


def dsi_time(
    share: Grid,
    alpha: Grid,
    lookahead: int,
    tokens: int,
    rules: Accounting = LISTING,
) -> np.ndarray:
    """Expected time of DSI under ``rules``, with a server for every pass.

    The pass over i blocks starts as soon as their drafts are written. So the token
    after n right drafts comes from the pass over ceil(n / lookahead) blocks. A
    ``plain_server`` may be sooner: after the whole blocks among the n drafts, it writes
    the remaining tokens one by one. We do not wait for drafts beyond the last token. At
    lookahead 1 this is Proposition 1.
    """

    def run(right: int, left: int) -> tuple[int, Grid]:
        gained = right + rules.corrected
        most_usable: float = left - rules.corrected  # drafts that can still be used
        if rules.unverified_end:
            if gained > left:
                return gained, 1.0  # the pass without drafts returns first
            most_usable = math.inf

        usable = min(right, most_usable)
        whole_blocks, rest = divmod(usable, lookahead)
        blocks = whole_blocks + bool(rest or rules.late)
        waits = min(blocks * lookahead, most_usable) * share
        if rules.plain_server:
            one_by_one = whole_blocks * lookahead * share + rest + rules.late
            waits = np.minimum(waits, one_by_one)
            waits = np.minimum(waits, usable)
        return gained, waits + 1

    return _mean_time(run, alpha, tokens, rules)


def speedup(
    share: Grid,
    alpha: Grid,
    tokens: int = 50,
    rules: Accounting = LISTING,
    lookaheads: Sequence[int] = (1, 5, 10),
) -> np.ndarray:
    """The speed-up of DSI over SI, each at the best of ``lookaheads``.

    Source: Table 1's protocol, section 4. Raises BadValue if every lookahead needs more
    servers than ``rules`` allow DSI.
    """
    most_servers = math.inf if rules.most_servers is None else rules.most_servers
    si_times, dsi_times = [], []
    for lookahead in lookaheads:
        si_times.append(si_time(share, alpha, lookahead, tokens, rules))
        is_allowed = servers_needed(share, lookahead) <= most_servers
        time = dsi_time(share, alpha, lookahead, tokens, rules)
        dsi_times.append(np.where(is_allowed, time, np.inf))

    best_si, best_dsi = np.min(si_times, 0), np.min(dsi_times, 0)
    if np.isinf(best_dsi).any():
        raise BadValue(
            f"no lookahead of {list(lookaheads)} needs at most {most_servers} servers "
            f"for a drafter that takes {np.min(share):g} of the target's time: "
            "give a longer lookahead"
        )
    ratio: np.ndarray = best_si / best_dsi
    return ratio


def _mean_time(
    run: Callable[[int, int], tuple[int, Grid]],
    alpha: Grid,
    tokens: int,
    rules: Accounting,
) -> np.ndarray:
    """Expected time for ``tokens``, by recurrence over the number of tokens left.

    ``run(right, left)`` describes a run of ``right`` right drafts that ends at a
    rejection, with ``left`` tokens to write: its tokens and its time.
    """
    alpha = np.asarray(alpha, float)
    if not rules.corrected and (alpha == 0).any():
        raise BadValue(
            "alpha is 0 and corrected is False, so no token ever counts: change one"
        )

    powers = [alpha**right for right in range(tokens + 2)]
    mean: list[Grid] = [0.0] * (tokens + 1)
    fewest = 0 if rules.unverified_end else 1
    for left in range(fewest, tokens + 1):
        longest = min(left + 1, rules.longest or left + 1)
        total: Grid = 0.0
        for right in range(longest + 1):
            gained, time = run(right, left)
            chance = powers[right] if right == longest else powers[right] * (1 - alpha)
            rest = mean[left - gained] if 0 < gained <= left else 0
            total = total + chance * (time + rest)
        # If a rejection adds no token, a run without any right draft is repeated.
        mean[left] = total if rules.corrected else total / alpha
    return np.asarray(mean[tokens])
