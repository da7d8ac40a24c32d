"""What a table's cell asks of a run: named statistics, and their 95 % intervals.

A statistic is a function of the summed counts of the requests, of plain decoding's for the same
requests, and of the run (its window, its cost ratio).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from speclib.errors import SpeclibError
from speclib.trace.metrics import Stats, astuple, total

from .duodecoding_branches import SHARES, counts

RESAMPLES = 1000


class Context(NamedTuple):
    """What a statistic may need besides counts: the window, c, and tokens in all to scale to."""

    gamma: int | None
    c: float
    tokens: int = 0


QUANTITIES: dict[str, Callable[[Stats, Stats, Context], float]] = {
    "speedup": lambda s, plain, _: s.decode_speed / plain.decode_speed,
    "speedup_e2e": lambda s, plain, _: s.decode_speed_e2e / plain.decode_speed_e2e,
    "decode_speed": lambda s, *_: s.decode_speed,
    # seconds per request, in passes of the target
    "passes": lambda s, plain, _: (
        s.seconds / s.requests / (plain.seconds / plain.tokens)
    ),
    "mat": lambda s, *_: s.mat,
    "run_length": lambda s, *_: s.run_length,
    # a run's tokens: the accepted drafts and the token that replaces the rejected one
    "run_tokens": lambda s, *_: (
        (s.accepted + s.rejected) / s.rejected if s.rejected else float("nan")
    ),
    "acceptance_rate": lambda s, *_: s.acceptance_rate,
    "draft_runs": lambda s, _, x: s.draft_runs / s.tokens * x.tokens,
    "target_runs": lambda s, _, x: s.target_runs / s.tokens * x.tokens,
    # seconds per step, after the first; speculative decoding's is one phase of each model
    "communication_per_step": lambda s, *_: s.communication,
    "verify_per_step": lambda s, *_: s.per_step(s.step_verify),
    "draft_per_step": lambda s, *_: s.per_step(s.step_draft),
    "target_per_step": lambda s, *_: s.per_step(s.step_target),
    "draft_over_verify": lambda s, *_: (
        s.step_draft / s.step_target if s.step_target else float("nan")
    ),
    "seconds_per_step": lambda s, *_: s.per_step(s.step_seconds),
    # seconds per 100 tokens, after the first commit
    "seconds": lambda s, *_: s.per_100(s.step_seconds),
    "draft_seconds": lambda s, *_: s.per_100(s.step_draft),
    "verify_seconds": lambda s, *_: s.per_100(s.step_target + s.step_verify),
    "passes_per_second": lambda s, *_: s.draft_runs / s.draft_seconds,
    # shares of that time: some device busy; the target; all but an exact draft pass per step
    "busy_share": lambda s, *_: s.step_busy / s.step_seconds,
    "target_share": lambda s, *_: s.step_target / s.step_seconds,
    "lent_share": lambda s, _, x: (s.step_busy - s.step_target / x.c) / s.step_seconds,
    # of the gamma levels of a tree or line of drafts: how deep the target follows
    "accepted_share": lambda s, _, x: s.accepted / (s.rounds * x.gamma),
    "drafted_per_round": lambda s, *_: s.drafted_per_round,
    "ttft": lambda s, *_: s.ttft / s.requests,
    "ttft_over_plain": lambda s, plain, _: (
        s.ttft / s.requests / (plain.ttft / plain.requests)
    ),
    # as published code counts: prefill, unverified drafts; plain decoding has none
    "published_speed": lambda s, *_: s.published_speed,
    "published_speedup": lambda s, plain, _: s.published_speed / plain.published_speed,
    "inflation": lambda s, *_: s.inflation,
    "gamma": lambda s, _, x: x.gamma,
    "c": lambda s, _, x: x.c,
}

# Of the requests' own speeds [n], each counted ``times`` [n].
SPREADS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "speed_variance": lambda speeds, times: float(np.cov(speeds, fweights=times)),
}

# What accounting = "as_published" makes of a statistic.
PUBLISHED = {"speedup": "published_speedup", "decode_speed": "published_speed"}


def accounted(stat: str, accounting: str) -> str:
    """The statistic that a cell with this ``accounting`` reads."""
    if accounting not in ("committed", "as_published"):
        raise SpeclibError(
            f"accounting is {accounting!r}: give 'committed' or 'as_published'"
        )
    return PUBLISHED.get(stat, stat) if accounting == "as_published" else stat


def value(name: str, run, tokens: int = 0) -> float:
    """The statistic of a CellResult over all its requests; ``tokens``: what counts are scaled to."""
    if name in SHARES:
        return SHARES[name](sum(map(counts, run.sequence_choices)))
    if name in SPREADS:
        n = len(run.stats)
        return SPREADS[name](_speeds(run), np.ones(n, int)) if n > 1 else float("nan")
    return _of(name)(
        total(run.stats), total(run.baseline), Context(run.gamma, run.c, tokens)
    )


def samples(name: str, run, tokens: int = 0) -> np.ndarray | None:
    """The statistic in ``RESAMPLES`` bootstrap resamples of the requests, seeded.

    A method and plain decoding are resampled together; and so are two runs of as many requests,
    since the same requests are drawn for both: their samples may be compared one by one. None
    where there is nothing to resample: one request, or a setting instead of a count.
    """
    n = len(run.stats)
    if n < 2 or name in ("gamma", "c"):
        return None
    times = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    if name in SHARES:
        sums = np.tensordot(times, np.array(list(map(counts, run.sequence_choices))), 1)
        found = np.array(list(map(SHARES[name], sums)))
    elif name in SPREADS:
        found = np.array([SPREADS[name](_speeds(run), drawn) for drawn in times])
    else:
        sums = [
            times @ np.array([astuple(s) for s in many])
            for many in (run.stats, run.baseline)
        ]
        context, quantity = Context(run.gamma, run.c, tokens), _of(name)
        found = np.array(
            [
                quantity(Stats(*a), Stats(*b), context)
                for a, b in zip(*(s.tolist() for s in sums), strict=True)
            ]
        )
    return None if np.isnan(found).all() else found


def _speeds(run) -> np.ndarray:
    return np.array([one.decode_speed for one in run.stats])


def interval(found: np.ndarray | None) -> tuple[float, float] | tuple[None, None]:
    """The middle 95 % of samples."""
    if found is None:
        return None, None
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)


def departures(run) -> str:
    """For how many requests a measured output is plain decoding's; of the others, where each
    leaves it first, and how close the target's choice was there. Samples are not compared."""
    if run.spec.temperature:
        return f"sampled at temperature {run.spec.temperature:g}"
    found = [
        f"after {at} tokens, top-2 logit gap {gap:.2g}"
        for at, gap in zip(run.facts["differs"], run.facts["gap"], strict=True)
        if at is not None
    ]
    n = len(run.stats)
    return "; ".join(
        [
            f"output of plain decoding: {n - len(found)} of {n}",
            *(f"first divergence {where}" for where in found),
        ]
    )


def told(spec, run) -> list[str]:
    """The settings of a run, as chosen; what its world is told; what it is compared with."""
    chosen = run.facts.get("chosen", dict(spec.settings)).items()
    parts = [" ".join([*(f"{name} {value}," for name, value in chosen)]).rstrip(",")]
    parts[0] += f", best of {run.facts['of']}" if "of" in run.facts else ""
    parts += [f"cancel {spec.cancel}"] if spec.cancel else []
    parts += (
        [f"each further token fed: +{spec.per_token:.1%} of a pass"]
        if spec.per_token
        else []
    )
    parts += [f"assumed: doubt {spec.doubt:g}"] if spec.doubt else []
    parts += ["end tokens ignored"] if spec.ignore_eos else []
    parts += [f"prompts of {spec.length} tokens"] if spec.length else []
    over = run.facts.get("over")
    return [
        *filter(None, parts),
        *([f"over {over[0]}, gamma {over[1]}"] if over else []),
    ]


def _of(name: str):
    if name not in QUANTITIES:
        raise SpeclibError(
            f"unknown statistic {name!r}; known: "
            f"{', '.join([*QUANTITIES, *SHARES, *SPREADS])}"
        )
    return QUANTITIES[name]
