"""Closed forms of the methods' speeds, and the inverses of some for calibration.

All assume that each tested draft token is accepted with probability ``alpha``, independently, and
that a pass costs the same however many tokens it is fed. Symbols: ``gamma`` draft length, ``draft``
and ``target`` seconds of one pass. They set a virtual run's alpha and check the simulation from
outside; a formula's value is never reported as a virtual number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from speclib.errors import SpeclibError

GAMMAS = range(1, 33)  # windows searched for the best one


def geometric(alpha: float, n: int) -> float:
    """1 + alpha + ... + alpha^(n-1): tokens of a block of n that ends at its first rejection,
    the replacement counted."""
    return sum(alpha**i for i in range(n))


# -- speculative decoding ------------------------------------------------------------------------
def sd_accepted(alpha: float, gamma: int) -> float:
    """Accepted drafts per target pass, bonus not counted: alpha + ... + alpha^gamma.

    Source: Leviathan et al. 2023, equation 1, less the one token that needs no draft."""
    return alpha * geometric(alpha, gamma)


def sd_tokens(alpha: float, gamma: int) -> float:
    """Tokens per target pass: 1 + alpha + ... + alpha^gamma. Source: Leviathan et al., eq. 1."""
    return geometric(alpha, gamma + 1)


def sd_speed(alpha: float, gamma: int, draft: float, target: float) -> float:
    """Tokens per second: a pass of the target after gamma of the draft. Source: as above, 3.4."""
    return sd_tokens(alpha, gamma) / (gamma * draft + target)


def sd_best(alpha: float, draft: float, target: float) -> int:
    """The window at which ``sd_speed`` is highest."""
    return max(GAMMAS, key=lambda gamma: sd_speed(alpha, gamma, draft, target))


# -- PEARL ---------------------------------------------------------------------------------------
def pearl_tokens(alpha: float, gamma: int) -> float:
    """Tokens per step, from the stationary chain over {pre-verify, post-verify}.

    Pre-verify commits one token and leads to post-verify with probability alpha; post-verify
    commits (1 - alpha^gamma) / (1 - alpha) and repeats with probability alpha^gamma. So a step is
    pre-verify with probability (1 - alpha^gamma) / (1 + alpha - alpha^gamma), and the mean is
    that over 1 - alpha. Source: ours, from Algorithm 2 of Liu et al. 2025.
    """
    block = geometric(alpha, gamma)
    rejected = (1 - alpha) * block  # 1 - alpha^gamma, exact near alpha = 1
    return block / (rejected + alpha)


def pearl_speed(
    alpha: float, gamma: int, draft: float, target: float, without: str | None = None
) -> float:
    """Tokens per second of PEARL, or of its ablation ``without`` "pre-verify" or "post-verify".

    A full step takes max(gamma * draft, target). Without pre-verify a rejection costs a drafting
    phase of gamma * draft in which the target idles and nothing is committed. Without post-verify
    a block is verified in a phase of ``target`` alone, with a bonus when all pass.
    """
    step, block, repeat = (
        max(gamma * draft, target),
        geometric(alpha, gamma),
        alpha**gamma,
    )
    if without == "pre-verify":
        if repeat == 1:
            return gamma / step
        return block / ((1 - repeat) * gamma * draft + step)
    if without == "post-verify":
        if gamma == 1:
            return 1 / step
        return (1 + alpha * block) / (step + alpha * target)
    if without is not None:
        raise SpeclibError(
            f"without is {without!r}: give 'pre-verify', 'post-verify' or None"
        )
    return pearl_tokens(alpha, gamma) / step


def pearl_best(alpha: float, draft: float, target: float) -> int:
    """The window at which ``pearl_speed`` is highest: floor(c) or ceil(c), as alpha decides."""
    return max(GAMMAS, key=lambda gamma: pearl_speed(alpha, gamma, draft, target))


def run_tokens(alpha: float) -> float:
    """Tokens from one rejection to the next, the replacement counted: 1 / (1 - alpha)."""
    return 1 / (1 - alpha)


def theorem_2(alpha: float) -> float:
    """Expected accepted tokens as the project page states it: 1 / (1 - alpha) + 1."""
    return 1 / (1 - alpha) + 1


def run_ratio(alpha: float, gamma: int) -> float:
    """Target passes of PEARL over those of speculative decoding, both at gamma, same output."""
    return sd_tokens(alpha, gamma) / pearl_tokens(alpha, gamma)


# -- DuoDecoding ----------------------------------------------------------------------------------
def begun(alpha: float, k: int, doubt: float) -> float:
    """The chance that the right token is among the draft's ``k`` likeliest, of which the first is
    right with a chance that is Beta with mean ``alpha``, alpha / doubt and (1 - alpha) / doubt, and
    each further one with the same chance if all before are wrong. ``doubt`` 0: only the first is.
    """
    none = 1 - alpha
    for i in range(1, k if doubt else 1):
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
    """Tokens per second of DuoDecoding with always ``k`` sequences, of n = gamma // k tokens each.

    Without a window a round commits one token; with one (n - 1 tokens) 1 + ... + alpha^(n-1). If
    all of it passed, the next round has one with the chance ``begun``; its passes: one for all
    first tokens, then k (n - 1). With k = 1 it is PEARL's chain, so PEARL's speed. Source: ours,
    from Algorithm 1 of Lv et al. 2025.
    """
    k = min(k, gamma)
    n, hit = gamma // k, begun(alpha, k, doubt)
    again = alpha ** (n - 1) * hit
    tokens = (1 - again + hit * geometric(alpha, n)) / (1 + hit - again)
    return tokens / max((1 + k * (n - 1)) * draft, target)


# -- DSI ---------------------------------------------------------------------------------------
def dsi_speed(alpha, lookahead: int, draft, target: float, servers: int | None = None):
    """Tokens per second of DSI; ``alpha`` and ``draft`` (at most ``target``) may be arrays.

    ``lookahead`` 1 and a server for every pass (None): Proposition 1 of an endless text. A right
    run of q * lookahead + r drafts is known after q blocks of drafting, then after another block or
    r target passes, whichever is sooner. Fewer servers score longer blocks: as many drafts as are
    written until one is free. An estimate for lookahead above 1: a drafter that tells its drafts by
    the block learns late that it went wrong. Source: ours, from section 3.1 of Timor et al. 2024.
    """
    alpha, share = (
        np.minimum(alpha, 1 - 1e-9),
        np.asarray(draft) / target,
    )  # 1 is a limit
    block = np.maximum(lookahead, np.ceil(1 / (share * (servers or np.inf)) - 1e-9))
    whole, waits = alpha**block, 0.0  # waits: (1 - alpha^block) x drafting time a run
    for r in range(1, int(np.max(block))):
        late = np.minimum(block * share, r) * (r < block)
        waits = waits + (1 - alpha) * alpha**r * late
    return (
        (1 - whole) / (1 - alpha) / (block * share * whole + waits + 1 - whole) / target
    )


# -- inverses: the alpha at which a printed quantity comes out ---------------------------------
def alpha_from_accepted(accepted: float, gamma: int) -> float:
    """Solves ``sd_accepted(alpha, gamma) = accepted``."""
    return _solve(
        lambda a: sd_accepted(a, gamma),
        accepted,
        f"{accepted:g} accepted drafts per pass at gamma {gamma}",
    )


def alpha_from_speedup(
    speedup: float, gamma: int | str, draft: float, target: float
) -> float:
    """The alpha whose SD speed is ``speedup`` times plain decoding's; gamma may be "best"."""

    def at(alpha):
        window = sd_best(alpha, draft, target) if gamma == "best" else gamma
        return sd_speed(alpha, window, draft, target) * target

    what = f"a speed-up of {speedup:g} at gamma {gamma}, c {target / draft:.2f}"
    return _solve(at, speedup, what)


def alpha_from_duodecoding(
    speed: float, gamma: int, draft: float, target: float
) -> float:
    """The alpha at which DuoDecoding with one sequence gives ``speed`` tokens per second."""
    return _solve(
        lambda a: duodecoding_speed(a, gamma, draft, target),
        speed,
        f"{speed:g} tok/s at a budget of {gamma}, c {target / draft:.2f}",
    )


def alpha_from_run_ratio(ratio: float, gamma: int) -> float:
    """Solves ``run_ratio(alpha, gamma) = ratio`` on its falling branch, the higher of two."""
    grid = [i / 1000 for i in range(1001)]
    top = max(grid, key=lambda a: run_ratio(a, gamma))
    return _solve(
        lambda a: run_ratio(a, gamma),
        ratio,
        f"a run ratio of {ratio:g} at gamma {gamma}",
        low=top,
    )


def _solve(
    formula: Callable[[float], float], value: float, what: str, low: float = 0.0
) -> float:
    """The root in [low, 1], to six digits."""
    from scipy.optimize import brentq

    ends = formula(low), formula(1.0)
    if not min(ends) <= value <= max(ends):
        raise SpeclibError(
            f"no acceptance rate gives {what}: from alpha {low:g} to 1 it goes from "
            f"{ends[0]:.3f} to {ends[1]:.3f}; check the printed cell"
        )
    return round(brentq(lambda a: formula(a) - value, low, 1.0, xtol=1e-9), 6)
