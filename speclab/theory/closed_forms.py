"""Closed forms of the methods' speeds, and the inverses of some for calibration.

All assume that each tested draft token is accepted with probability ``alpha``,
independently, and that a pass costs the same for any number of tokens. ``gamma`` is the
draft length; ``draft`` and ``target`` are the seconds of one pass of each model. The
formulas set a virtual run's alpha and check the simulation independently. A formula's
value is never reported as a virtual number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from speclib.errors import BadValue

GAMMAS = range(1, 33)  # draft lengths searched for the best one

Grid: TypeAlias = Any  # a number, or an array with one per grid point


def geometric(alpha: float, n: int) -> float:
    """1 + alpha + ... + alpha^(n-1).

    The expected number of tokens from a block of n that ends at its first rejection,
    including the replacement.
    """
    return sum(alpha**i for i in range(n))


# -- speculative decoding --------------------------------------------------------------
def sd_accepted(alpha: float, gamma: int) -> float:
    """Accepted drafts per target pass, without the bonus: alpha + ... + alpha^gamma.

    Source: Leviathan et al. 2023, equation 1, minus the one token that needs no draft.
    """
    return alpha * geometric(alpha, gamma)


def sd_tokens(alpha: float, gamma: int) -> float:
    """Tokens per target pass: 1 + alpha + ... + alpha^gamma.

    Source: Leviathan et al. 2023, equation 1.
    """
    return geometric(alpha, gamma + 1)


def sd_speed(alpha: Grid, gamma: int, draft: Grid, target: float) -> Grid:
    """Tokens per second: one target pass after gamma draft passes.

    Source: Leviathan et al. 2023, section 3.4.
    """
    return sd_tokens(alpha, gamma) / (gamma * draft + target)


def sd_best(alpha: float, draft: float, target: float) -> int:
    """The draft length at which ``sd_speed`` is highest."""
    return max(GAMMAS, key=lambda gamma: sd_speed(alpha, gamma, draft, target))


# -- PEARL -----------------------------------------------------------------------------
def pearl_tokens(alpha: float, gamma: int) -> float:
    """Tokens per step, from the Markov chain over {pre-verify, post-verify}.

    Pre-verify commits one token and leads to post-verify with probability alpha.
    Post-verify commits (1 - alpha^gamma) / (1 - alpha) tokens and repeats with
    probability alpha^gamma. In the stationary state, a step is therefore pre-verify
    with probability (1 - alpha^gamma) / (1 + alpha - alpha^gamma). The mean is this
    probability divided by 1 - alpha. Source: ours, from Algorithm 2 of Liu et al. 2025.
    """
    block = geometric(alpha, gamma)
    rejected = (1 - alpha) * block  # 1 - alpha^gamma, exact near alpha = 1
    return block / (rejected + alpha)


def pearl_speed(
    alpha: float, gamma: int, draft: float, target: float, without: str | None = None
) -> float:
    """Tokens per second of PEARL, or of an ablation ``without`` one of its two parts.

    A full step takes max(gamma * draft, target). Without "pre-verify" a rejection costs
    a drafting phase of gamma * draft, in which the target idles and nothing is
    committed. Without "post-verify" a block is verified in a separate phase of
    ``target`` seconds, with a bonus if all drafts are accepted. Raises BadValue for
    any other ``without``.
    """
    step = max(gamma * draft, target)
    block = geometric(alpha, gamma)
    repeat = alpha**gamma
    if without is None:
        return pearl_tokens(alpha, gamma) / step
    if without == "pre-verify":
        if repeat == 1:
            return gamma / step
        return block / ((1 - repeat) * gamma * draft + step)
    if without == "post-verify":
        if gamma == 1:
            return 1 / step
        return (1 + alpha * block) / (step + alpha * target)
    raise BadValue(f"without is {without!r}: give 'pre-verify', 'post-verify' or None")


def run_tokens(alpha: float) -> float:
    """Tokens per rejection, including the replacement: 1 / (1 - alpha)."""
    return 1 / (1 - alpha)


def run_ratio(alpha: float, gamma: int) -> float:
    """Target passes of PEARL divided by those of speculative decoding.

    Both write the same output and draft ``gamma`` tokens.
    """
    return sd_tokens(alpha, gamma) / pearl_tokens(alpha, gamma)


# -- DuoDecoding -----------------------------------------------------------------------
def right_among(alpha: float, k: int, doubt: float) -> float:
    """The probability that the right token is among the draft's ``k`` likeliest.

    The likeliest is right with a probability distributed as Beta(alpha / doubt,
    (1 - alpha) / doubt), whose mean is ``alpha``. Each further token is right with the
    same probability, given that all before it are wrong. With ``doubt`` 0 only the
    first can be right.
    """
    none = 1 - alpha
    if doubt:
        for i in range(1, k):
            none *= (1 - alpha + i * doubt) / (1 + i * doubt)
    return 1 - none


def duodecoding_speed(
    alpha: float,
    gamma: int,
    draft: float,
    target: float,
    k: int = 1,
    doubt: float = 0.0,
) -> float:
    """Tokens per second of DuoDecoding with a constant number ``k`` of sequences.

    Each sequence has n = gamma // k tokens. A round without a window commits one token;
    a round with a window of n - 1 tokens commits 1 + ... + alpha^(n-1). If the whole
    window was accepted, the next round has one with probability ``right_among``. A
    round takes one draft pass for all first tokens, then k (n - 1) more. With k = 1 the
    Markov chain, and therefore the speed, is PEARL's. Source: ours, from Algorithm 1 of
    Lv et al. 2025.
    """
    k = min(k, gamma)
    n = gamma // k
    found = right_among(alpha, k, doubt)
    again = alpha ** (n - 1) * found
    tokens = (1 - again + found * geometric(alpha, n)) / (1 + found - again)
    return tokens / max((1 + k * (n - 1)) * draft, target)


# -- SSD -------------------------------------------------------------------------------
def ssd_hit(alpha: float, gamma: int, fan: int, doubt: float = 0.0) -> float:
    """The probability that SSD drafted for the target's verdict on ``gamma`` drafts.

    If all drafts pass, the target's token must be among the draft's ``fan`` likeliest.
    If one fails, it must be among the ``fan`` that rank after the failed one.
    ``doubt``: see ``right_among``. Source: ours, from arXiv:2603.03251.
    """
    all_pass = alpha**gamma
    after_all = right_among(alpha, fan, doubt) if fan else 0.0
    if alpha == 1:
        return after_all
    after_a_failure = (right_among(alpha, fan + 1, doubt) - alpha) / (1 - alpha)
    return all_pass * after_all + (1 - all_pass) * after_a_failure


def ssd_speed(
    alpha: float,
    gamma: int,
    draft: float,
    target: float,
    fan: int = 1,
    doubt: float = 0.0,
    level: float | None = None,
) -> float:
    """Tokens per second of SSD with a backup that drafts.

    A round takes the longer of a target pass and a fork: a draft pass over the window,
    and gamma passes over all guesses at once, each taking ``level`` seconds (None: as
    long as a draft pass). After a miss the backup's gamma passes come first. Source:
    ours; ``ssd_speedup`` is the paper's.
    """
    hit = ssd_hit(alpha, gamma, fan, doubt)
    fork = draft + gamma * (draft if level is None else level)
    backup = (1 - hit) * gamma * draft
    return sd_tokens(alpha, gamma) / (max(fork, target) + backup)


def ssd_speedup(
    hit: float, hit_tokens: float, miss_tokens: float, fork: float, backup: float
) -> float:
    """SSD's speed over plain decoding's: a round's tokens over its time.

    hit: the probability that an outcome was guessed. hit_tokens, miss_tokens: a round's
    tokens after a hit, and after a miss. fork, backup: their times, in target passes.
    A round after a miss takes 1 + ``backup``, since the paper assumes that its fork
    ends within a target pass.

    Source: arXiv:2603.03251, the theorem on expected speed-up.
    """
    tokens = hit * hit_tokens + (1 - hit) * miss_tokens
    return tokens / (hit * max(1.0, fork) + (1 - hit) * (1 + backup))


# -- batches of requests --------------------------------------------------------------
def batch_pass(fixed: float, per_token: float, tokens: Grid, kept: Grid = 0.0) -> Grid:
    """Seconds of a target pass over ``tokens`` tokens of all requests.

    kept: seconds to read the KV caches of all requests.
    """
    return fixed + per_token * tokens + kept


def batch_speedup(
    batch: Grid,
    tokens: float,
    rows: float,
    fixed: float,
    per_token: float,
    draft: float = 0.0,
    kept: float = 0.0,
) -> Grid:
    """A method's tokens per second over plain decoding's, ``batch`` requests at a time.

    Per request, a round commits ``tokens`` tokens and feeds ``rows`` tokens to the
    target. A target pass takes ``fixed`` seconds, plus ``per_token`` for each token fed
    to it, plus ``kept`` for each request's KV cache. ``draft``: seconds of drafting per
    round that no target pass hides, for any number of requests. In speculative decoding
    ``tokens`` is ``sd_tokens`` and ``rows`` is gamma + 1.

    Source: ours, by arithmetic. A pass's cost is from arXiv:2601.11580.
    """
    plain = batch_pass(fixed, per_token, batch, batch * kept)
    round_seconds = batch_pass(fixed, per_token, batch * rows, batch * kept) + draft
    return tokens * plain / round_seconds


def batch_that_stops_paying(
    tokens: float,
    rows: float,
    fixed: float,
    per_token: float,
    draft: float = 0.0,
    kept: float = 0.0,
) -> float:
    """B*, the batch size at which ``batch_speedup`` is 1; infinity if it never is.

    B* = (fixed (tokens - 1) - draft)
         / (per_token (rows - tokens) - kept (tokens - 1))

    B* is infinite if reading the KV caches costs more than the wasted rows:
    speculation then pays at every batch size above some limit. B* is 0 if speculation
    never pays.

    Source: ours, by arithmetic. MagicDec, arXiv:2408.11049, found that long texts bring
    the gain back.
    """
    gained = fixed * (tokens - 1) - draft
    lost = per_token * (rows - tokens) - kept * (tokens - 1)
    if lost < 0 or lost == 0 <= gained:
        return np.inf
    return max(0.0, gained / lost) if lost else 0.0


# -- DSI -------------------------------------------------------------------------------
def dsi_speed(
    alpha: Grid,
    lookahead: int,
    draft: Grid,
    target: float,
    servers: int | None = None,
) -> Grid:
    """Tokens per second of DSI.

    ``alpha`` and ``draft`` (at most ``target``) may be arrays. ``lookahead`` 1 and a
    server for every pass (None) give Proposition 1 for an endless text. A run of
    q * lookahead + r right drafts is verified after q blocks of drafting, followed by
    another block or r target passes, whichever is sooner. With fewer servers, blocks
    are longer: a block has all drafts written until a server is free. For lookahead
    above 1 this is an estimate, because a drafter that reports its drafts in blocks is
    corrected late.

    Source: ours, from section 3.1 of Timor et al. 2024.
    """
    alpha = np.minimum(alpha, 1 - 1e-9)  # 1 is only a limit
    share = np.asarray(draft) / target
    until_a_server_is_free = np.ceil(1 / (share * (servers or np.inf)) - 1e-9)
    block = np.maximum(lookahead, until_a_server_is_free)
    all_right = alpha**block

    waits: Grid = 0.0  # (1 - alpha^block) x drafting time of a run
    for right in range(1, int(np.max(block))):
        late = np.minimum(block * share, right) * (right < block)
        waits = waits + (1 - alpha) * alpha**right * late
    tokens = (1 - all_right) / (1 - alpha)
    return tokens / (block * share * all_right + waits + 1 - all_right) / target


# -- inverses: the alpha that gives a printed quantity ---------------------------------
def alpha_from_accepted(accepted: float, gamma: int) -> float:
    """The alpha at which ``sd_accepted`` is ``accepted``."""
    return _solve(
        lambda alpha: sd_accepted(alpha, gamma),
        accepted,
        f"{accepted:g} accepted drafts per pass at gamma {gamma}",
    )


def alpha_from_run_tokens(tokens: float) -> float:
    """The alpha at which ``run_tokens`` is ``tokens``.

    Raises BadValue for less than 1.
    """
    if tokens < 1:
        raise BadValue(
            f"{tokens:g} tokens from one rejection to the next: give at least 1"
        )
    return 1 - 1 / tokens


def alpha_from_speedup(
    speedup: float, gamma: int | str, draft: float, target: float
) -> float:
    """The alpha at which SD is ``speedup`` times as fast as plain decoding.

    ``gamma`` "best" is the fastest draft length at that alpha.
    """

    def speedup_at(alpha: float) -> float:
        window = sd_best(alpha, draft, target) if gamma == "best" else int(gamma)
        speed: float = sd_speed(alpha, window, draft, target)
        return speed * target

    what = f"a speed-up of {speedup:g} at gamma {gamma}, c {target / draft:.2f}"
    return _solve(speedup_at, speedup, what)


def alpha_from_duodecoding(
    speed: float, gamma: int, draft: float, target: float
) -> float:
    """The alpha at which DuoDecoding with one sequence writes ``speed`` tokens/s."""
    return _solve(
        lambda alpha: duodecoding_speed(alpha, gamma, draft, target),
        speed,
        f"{speed:g} tok/s at a budget of {gamma}, c {target / draft:.2f}",
    )


def alpha_from_run_ratio(ratio: float, gamma: int) -> float:
    """The higher of the two alphas at which ``run_ratio`` is ``ratio``.

    We search the falling branch, from the highest ratio to alpha 1.
    """
    alphas = [i / 1000 for i in range(1001)]
    highest = max(alphas, key=lambda alpha: run_ratio(alpha, gamma))
    return _solve(
        lambda alpha: run_ratio(alpha, gamma),
        ratio,
        f"a run ratio of {ratio:g} at gamma {gamma}",
        low=highest,
    )


def _solve(
    formula: Callable[[float], float], value: float, what: str, low: float = 0.0
) -> float:
    """The alpha in [low, 1] at which ``formula`` is ``value``, to six digits.

    Raises BadValue, which states ``what`` was asked for and the formula's range.
    """
    from scipy.optimize import brentq

    at_low, at_one = formula(low), formula(1.0)
    if not min(at_low, at_one) <= value <= max(at_low, at_one):
        raise BadValue(
            f"no acceptance rate gives {what}: from alpha {low:g} to 1 it runs from "
            f"{at_low:.3f} to {at_one:.3f}; check the printed cell"
        )
    root: float = brentq(lambda alpha: formula(alpha) - value, low, 1.0, xtol=1e-9)
    return round(root, 6)
