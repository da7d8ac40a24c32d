"""What a table's cell asks of a run: named statistics, and their resamples.

Every function marked ``@statistic`` is one that a table's ``stat`` or ``metric`` may
name. It reads the summed counts of a cell's requests, those of plain decoding on the
same requests, and the draft length and cost ratio of the run. The counts are
``speclib.trace.metrics``'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from speclab.experiment.spec import CellResult
from speclib.errors import BadValue, unknown_name
from speclib.trace.metrics import Stats, astuple, total

from .bootstrap import Resamples, draw_resamples, measured_once
from .devices import reserved_devices
from .duodecoding_sequences import SHARES, count_draftings


@dataclass(frozen=True)
class Totals:
    """What a statistic is computed from.

    ``counts`` are those of the cell's requests, ``plain`` those of plain decoding on
    the same requests. ``gamma`` is the draft length, ``c`` the cost ratio.
    ``scaled_tokens`` is the number of tokens that runs of a model are scaled to,
    ``devices`` how many devices the run reserves.
    """

    counts: Stats
    plain: Stats
    gamma: int | None
    c: float
    scaled_tokens: int = 0
    devices: int = 1


Statistic = Callable[[Totals], float]
STATISTICS: dict[str, Statistic] = {}


def statistic(function: Statistic) -> Statistic:
    """Lets tables ask for ``function`` by its name."""
    STATISTICS[function.__name__] = function
    return function


# -- speeds ----------------------------------------------------------------------------
@statistic
def speedup(run: Totals) -> float:
    """Tokens per second after the first commit, over plain decoding's."""
    return run.counts.decode_speed / run.plain.decode_speed


@statistic
def speedup_e2e(run: Totals) -> float:
    """Tokens per second with the prefill included, over plain decoding's."""
    return run.counts.decode_speed_e2e / run.plain.decode_speed_e2e


@statistic
def decode_speed(run: Totals) -> float:
    """Tokens per second after the first commit."""
    return run.counts.decode_speed


@statistic
def speed_with_prefill(run: Totals) -> float:
    """Tokens per second with the prefill included."""
    return run.counts.decode_speed_e2e


@statistic
def device_seconds_per_token(run: Totals) -> float:
    """Seconds of all reserved devices per token, after the first commit.

    A device is reserved from the first token to the last, whether it works or waits.
    """
    return run.devices * run.counts.tpot


@statistic
def passes_per_second(run: Totals) -> float:
    """Passes of the draft model per second that it works."""
    return run.counts.draft_runs / run.counts.draft_seconds


@statistic
def published_speed(run: Totals) -> float:
    """Tokens per second as published code counts: with prefill and untested drafts."""
    return run.counts.published_speed


@statistic
def published_speedup(run: Totals) -> float:
    """``published_speed`` over plain decoding's, which has no unverified drafts."""
    return run.counts.published_speed / run.plain.published_speed


@statistic
def inflation(run: Totals) -> float:
    """``published_speed`` over committed tokens per second: what that counting adds."""
    return run.counts.inflation


# -- times -----------------------------------------------------------------------------
@statistic
def passes(run: Totals) -> float:
    """Seconds per request, in passes of the target."""
    counts, plain = run.counts, run.plain
    return counts.seconds / counts.requests / (plain.seconds / plain.tokens)


@statistic
def ttft_over_plain(run: Totals) -> float:
    """Seconds to the first token, per request, over plain decoding's."""
    counts, plain = run.counts, run.plain
    return counts.ttft / counts.requests / (plain.ttft / plain.requests)


@statistic
def seconds(run: Totals) -> float:
    """Seconds per 100 tokens, after the first commit."""
    return run.counts.per_100(run.counts.step_seconds)


@statistic
def draft_seconds(run: Totals) -> float:
    """The part of ``seconds`` in which the draft model works."""
    return run.counts.per_100(run.counts.step_draft)


@statistic
def verify_seconds(run: Totals) -> float:
    """The part of ``seconds`` in which the target works or drafts are compared."""
    return run.counts.per_100(run.counts.step_target + run.counts.step_verify)


# -- times per step, after the first; a step of speculative decoding is one phase of
# each model
@statistic
def seconds_per_step(run: Totals) -> float:
    """Seconds per step."""
    return run.counts.per_step(run.counts.step_seconds)


@statistic
def draft_per_step(run: Totals) -> float:
    """Seconds per step in which the draft model works."""
    return run.counts.per_step(run.counts.step_draft)


@statistic
def target_per_step(run: Totals) -> float:
    """Seconds per step in which the target works."""
    return run.counts.per_step(run.counts.step_target)


@statistic
def verify_per_step(run: Totals) -> float:
    """Seconds per step in which drafts are compared."""
    return run.counts.per_step(run.counts.step_verify)


@statistic
def communication_per_step(run: Totals) -> float:
    """Seconds per step in which nothing is computed or compared."""
    return run.counts.communication


@statistic
def draft_over_verify(run: Totals) -> float:
    """Time of the draft model over time of the target."""
    if not run.counts.step_target:
        return float("nan")
    return run.counts.step_draft / run.counts.step_target


# -- shares of the time after the first commit -----------------------------------------
@statistic
def busy_share(run: Totals) -> float:
    """The share in which some device works."""
    return run.counts.step_busy / run.counts.step_seconds


@statistic
def target_share(run: Totals) -> float:
    """The share in which the target works."""
    return run.counts.step_target / run.counts.step_seconds


@statistic
def lent_share(run: Totals) -> float:
    """The share in which some device works, but for an exact draft pass per step."""
    counts = run.counts
    return (counts.step_busy - counts.step_target / run.c) / counts.step_seconds


# -- drafts ----------------------------------------------------------------------------
@statistic
def mat(run: Totals) -> float:
    """Mean accepted tokens per pass of the target, the bonus not counted."""
    return run.counts.mat


@statistic
def tokens_per_pass(run: Totals) -> float:
    """Tokens committed per pass of the target."""
    return run.counts.tokens / run.counts.target_runs


@statistic
def acceptance_rate(run: Totals) -> float:
    """Accepted drafts over tested ones."""
    return run.counts.acceptance_rate


@statistic
def accepted_share(run: Totals) -> float:
    """How deep the target follows a tree or line of drafts, of its gamma levels."""
    return run.counts.accepted / (run.counts.rounds * _draft_length(run))


@statistic
def accepted_of_levels(run: Totals) -> float:
    """How deep the target follows, of the levels that were drafted.

    It is ``accepted_share`` where every round drafts gamma levels. EAGLE's first round
    drafts none: it reads the prompt.
    """
    if not run.counts.draft_runs:
        return float("nan")
    return run.counts.accepted / run.counts.draft_runs


@statistic
def run_length(run: Totals) -> float:
    """Mean accepted drafts from one rejection to the next."""
    return run.counts.run_length


@statistic
def run_tokens(run: Totals) -> float:
    """``run_length`` and the token that replaces the rejected draft."""
    counts = run.counts
    if not counts.rejected:
        return float("nan")
    return (counts.accepted + counts.rejected) / counts.rejected


@statistic
def drafted_per_round(run: Totals) -> float:
    """Tokens that the target is offered per round."""
    return run.counts.drafted_per_round


@statistic
def draft_runs(run: Totals) -> float:
    """Passes of the draft model, scaled to so many tokens."""
    return run.counts.draft_runs / run.counts.tokens * run.scaled_tokens


@statistic
def target_runs(run: Totals) -> float:
    """Passes of the target, scaled to so many tokens."""
    return run.counts.target_runs / run.counts.tokens * run.scaled_tokens


# Those that count tokens and passes, and know no seconds.
COUNTED = frozenset(
    (
        "mat",
        "tokens_per_pass",
        "acceptance_rate",
        "accepted_share",
        "accepted_of_levels",
        "run_length",
        "run_tokens",
        "drafted_per_round",
        "draft_runs",
        "target_runs",
    )
)


# -- settings that a table shows as numbers --------------------------------------------
@statistic
def gamma(run: Totals) -> float:
    """The draft length."""
    return _draft_length(run)


@statistic
def c(run: Totals) -> float:
    """The cost ratio: seconds of a target pass over those of a draft pass."""
    return run.c


def _draft_length(run: Totals) -> int:
    if run.gamma is None:
        raise BadValue(
            "gamma is None: this method has no draft length; ask for another `stat`"
        )
    return run.gamma


SETTINGS = ("gamma", "c")  # statistics with nothing to resample
SIGNED = ("lent_share", "communication_per_step")  # those that are differences


def speed_variance(speeds: np.ndarray, times: np.ndarray) -> float:
    """The variance of the requests' own ``speeds`` [n], each counted ``times`` [n]."""
    return float(np.cov(speeds, fweights=times))


# Statistics of the requests' own speeds instead of their summed counts.
STATISTICS_OF_SPEEDS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "speed_variance": speed_variance,
}

# What accounting = "as_published" makes of a statistic.
PUBLISHED = {"speedup": "published_speedup", "decode_speed": "published_speed"}


def apply_accounting(stat: str, accounting: str) -> str:
    """The statistic that a cell with this ``accounting`` reads."""
    if accounting not in ("committed", "as_published"):
        raise BadValue(
            f"accounting is {accounting!r}: give 'committed' or 'as_published'"
        )
    if accounting == "as_published":
        return PUBLISHED.get(stat, stat)
    return stat


# -- of a cell's result ----------------------------------------------------------------
def compute(name: str, result: CellResult, scaled_tokens: int = 0) -> float:
    """The statistic ``name`` of a cell, over all its requests.

    Counts of passes are scaled to ``scaled_tokens``. Raises SpeclibError listing the
    known statistics, if there is none of that name.
    """
    if name in SHARES:
        return SHARES[name].share_in(np.sum(_draftings_by_request(result), axis=0))
    if name in STATISTICS_OF_SPEEDS:
        n = len(result.stats)
        if n < 2:
            return float("nan")
        return STATISTICS_OF_SPEEDS[name](_speeds(result), np.ones(n, int))
    totals = Totals(
        _total(result.stats),
        _total(result.baseline),
        result.gamma,
        result.c,
        scaled_tokens,
        reserved_devices(result),
    )
    return _find(name)(totals)


def _total(requests: list[Stats]) -> Stats:
    """Their sum; a single request is asked for most, and is its own."""
    return requests[0] if len(requests) == 1 else total(requests)


def resample(name: str, result: CellResult, scaled_tokens: int = 0) -> Resamples | None:
    """The statistic in bootstrap resamples of the requests.

    A method and plain decoding are resampled together, and so are two runs of as many
    requests (see ``bootstrap``). None where there is nothing to resample: a setting
    instead of a count, or a statistic that is undefined in every resample.
    """
    if name in SETTINGS:
        return None
    n = len(result.stats)
    if n == 1:
        return measured_once(compute(name, result, scaled_tokens))

    times = draw_resamples(n)
    if name in SHARES:
        values = _resample_share(name, result, times)
    elif name in STATISTICS_OF_SPEEDS:
        speeds = _speeds(result)
        values = np.array(
            [STATISTICS_OF_SPEEDS[name](speeds, drawn) for drawn in times]
        )
    else:
        values = _resample_totals(name, result, times, scaled_tokens)
    if np.isnan(values).all():
        return None
    return Resamples(values, requests=n, signed=name in SIGNED)


def _resample_share(name: str, result: CellResult, times: np.ndarray) -> np.ndarray:
    by_request = np.array(_draftings_by_request(result))
    by_resample = np.tensordot(times, by_request, 1)
    return np.array([SHARES[name].share_in(draftings) for draftings in by_resample])


class _HasZero(Exception):
    """A count that is zero in some resample, which a statistic looks at."""


class _Column(np.ndarray):
    """One count in all resamples at once; it is true if it is zero in none."""

    def __bool__(self) -> bool:
        if np.all(np.asarray(self) != 0):
            return True
        raise _HasZero


def _resample_totals(
    name: str, result: CellResult, times: np.ndarray, scaled_tokens: int
) -> np.ndarray:
    function = _find(name)
    counts = times @ np.array([astuple(request) for request in result.stats])
    plain = times @ np.array([astuple(request) for request in result.baseline])
    devices = reserved_devices(result)

    def totals(own: Iterable[Any], baseline: Iterable[Any]) -> Totals:
        return Totals(
            Stats(*own),
            Stats(*baseline),
            result.gamma,
            result.c,
            scaled_tokens,
            devices,
        )

    try:
        own_columns, plain_columns = counts.T.view(_Column), plain.T.view(_Column)
        values = np.asarray(function(totals(own_columns, plain_columns)), float)
        return np.broadcast_to(values, len(times))
    except _HasZero:
        pass  # where a count is zero, a statistic has its own rule: one by one

    # Few requests are often drawn as before: each different draw is computed once.
    _, first, draws = np.unique(times, axis=0, return_index=True, return_inverse=True)
    own_totals, plain_totals = counts[first].tolist(), plain[first].tolist()
    each = [
        function(totals(own, baseline))
        for own, baseline in zip(own_totals, plain_totals, strict=True)
    ]
    return np.array(each)[draws.ravel()]


def _draftings_by_request(result: CellResult) -> list[np.ndarray]:
    return [count_draftings(draftings) for draftings in result.sequence_choices]


def _speeds(result: CellResult) -> np.ndarray:
    return np.array([request.decode_speed for request in result.stats])


def _find(name: str) -> Statistic:
    if name not in STATISTICS:
        known = [*STATISTICS, *SHARES, *STATISTICS_OF_SPEEDS]
        raise unknown_name(f"unknown statistic {name!r}", name, known)
    return STATISTICS[name]
