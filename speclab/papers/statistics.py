"""Named statistics, which a table's cells compute from their runs.

A table's ``stat`` or ``metric`` names one of ``STATISTICS``. It is computed from the
counts of the runs and of their baseline on the same requests (see ``traces.counts``),
the draft length and the cost ratio.

A statistic is computed from sums over all requests, for example all tokens over all
seconds. Ratios over plain decoding in timed runs (``OVER_PLAIN``) are an exception:
each is the geometric mean over prompts of the method over plain decoding on the same
prompt, both run in the same minute. Confidence intervals are in ``numbers``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum, isfinite, log
from statistics import variance

from speclab.runs.rows import CellRuns
from speclab.traces.counts import Counts
from speclib.errors import BadValue, unknown_name
from speclib.trace.metrics import ratio, total

from .devices import reserved_devices
from .ledger import DEVICE_SECONDS
from .numbers import Number


@dataclass(frozen=True)
class Totals:
    """The inputs of a statistic.

    ``counts`` come from the cell's requests, ``plain`` from plain decoding on the same
    requests. ``gamma`` is the draft length, ``c`` the cost ratio. ``scaled_tokens`` is
    the number of tokens to which a model's runs are scaled, ``devices`` the number of
    devices that the run reserves.
    """

    counts: Counts
    plain: Counts
    gamma: int | None
    c: float
    scaled_tokens: int = 0
    devices: int = 1


def _draft_length(run: Totals) -> int:
    if run.gamma is None:
        raise BadValue(
            "gamma is None: this method has no draft length; ask for another `stat`"
        )
    return run.gamma


def _lent_share(run: Totals) -> float:
    """The share of time with a device at work, minus one exact draft pass per step."""
    counts = run.counts
    return (counts.step_busy - counts.step_target / run.c) / counts.step_seconds


def _passes(run: Totals) -> float:
    """Seconds per request, in passes of the target."""
    counts, plain = run.counts, run.plain
    return counts.seconds / counts.requests / (plain.seconds / plain.tokens)


def _ttft_over_plain(run: Totals) -> float:
    """Seconds to the first token, per request, over plain decoding's."""
    counts, plain = run.counts, run.plain
    return counts.ttft / counts.requests / (plain.ttft / plain.requests)


Statistic = Callable[[Totals], float]

# What a table's ``stat`` or ``metric`` may name. "Step" statistics count everything
# after the first commit; a step of speculative decoding is one phase of each model.
STATISTICS: dict[str, Statistic] = {
    # Tokens per second after the first commit; "e2e" and "with prefill" include the
    # prefill, and "published" also counts drafts that no pass has tested.
    "decode_speed": lambda run: run.counts.decode_speed,
    "speed_with_prefill": lambda run: run.counts.decode_speed_e2e,
    "published_speed": lambda run: run.counts.published_speed,
    "inflation": lambda run: run.counts.inflation,  # what the published count adds
    # Over plain decoding on the same requests, which has no untested drafts.
    "speedup": lambda run: run.counts.decode_speed / run.plain.decode_speed,
    "speedup_e2e": lambda run: run.counts.decode_speed_e2e / run.plain.decode_speed_e2e,
    "published_speedup": lambda run: (
        run.counts.published_speed / run.plain.published_speed
    ),
    "passes": _passes,
    "ttft_over_plain": _ttft_over_plain,
    # Seconds of all reserved devices per token: a device is reserved from the first
    # token to the last, whether it works or waits.
    DEVICE_SECONDS: lambda run: run.devices * run.counts.tpot,
    # Seconds per 100 tokens: in total, in the draft model, and in the target or in
    # comparing drafts.
    "seconds": lambda run: run.counts.per_100(run.counts.step_seconds),
    "draft_seconds": lambda run: run.counts.per_100(run.counts.step_draft),
    "verify_seconds": lambda run: run.counts.per_100(
        run.counts.step_target + run.counts.step_verify
    ),
    # Seconds per step: in total, in either model, in comparing drafts, and in neither.
    "seconds_per_step": lambda run: run.counts.per_step(run.counts.step_seconds),
    "draft_per_step": lambda run: run.counts.per_step(run.counts.step_draft),
    "target_per_step": lambda run: run.counts.per_step(run.counts.step_target),
    "verify_per_step": lambda run: run.counts.per_step(run.counts.step_verify),
    "communication_per_step": lambda run: run.counts.communication,
    "draft_over_verify": lambda run: ratio(
        run.counts.step_draft, run.counts.step_target
    ),
    # Shares of the time after the first commit in which any device, or the target,
    # works.
    "busy_share": lambda run: run.counts.step_busy / run.counts.step_seconds,
    "target_share": lambda run: run.counts.step_target / run.counts.step_seconds,
    "lent_share": _lent_share,
    # Drafts: accepted ones per target pass, tokens per pass, accepted over tested ones,
    # and how deep the target follows a tree or line, as a share of gamma levels or of
    # the drafted levels. (EAGLE's first round drafts none: it reads the prompt.)
    "mat": lambda run: run.counts.mat,
    "tokens_per_pass": lambda run: run.counts.tokens / run.counts.target_runs,
    "acceptance_rate": lambda run: run.counts.acceptance_rate,
    "accepted_share": lambda run: (
        run.counts.accepted / (run.counts.rounds * _draft_length(run))
    ),
    "accepted_of_levels": lambda run: ratio(run.counts.accepted, run.counts.draft_runs),
    # Accepted drafts from one rejection to the next, without and with the replacement.
    "run_length": lambda run: run.counts.run_length,
    "run_tokens": lambda run: ratio(
        run.counts.accepted + run.counts.rejected, run.counts.rejected
    ),
    "drafted_per_round": lambda run: run.counts.drafted_per_round,
    # Passes of a model, scaled to ``scaled_tokens``, and draft passes per busy second.
    "draft_runs": lambda run: (
        run.counts.draft_runs / run.counts.tokens * run.scaled_tokens
    ),
    "target_runs": lambda run: (
        run.counts.target_runs / run.counts.tokens * run.scaled_tokens
    ),
    "passes_per_second": lambda run: run.counts.draft_runs / run.counts.draft_seconds,
    # Settings that a table shows as numbers.
    "gamma": _draft_length,
    "c": lambda run: run.c,
}

SETTINGS = ("gamma", "c")  # statistics that don't depend on the requests
SIGNED = ("lent_share", "communication_per_step")  # statistics that are differences
SPEED_VARIANCE = "speed_variance"  # over the requests' own speeds, not over sums

# In timed runs, geometric means over prompts.
OVER_PLAIN = (
    "speedup",
    "speedup_e2e",
    "published_speedup",
    "ttft_over_plain",
    "passes",
)
MOST_PARTS = 20  # parts into which virtual requests are grouped for an interval

# The statistics that accounting = "as_published" replaces, and by which.
PUBLISHED = {"speedup": "published_speedup", "decode_speed": "published_speed"}


def apply_accounting(stat: str, accounting: str) -> str:
    """The statistic that a cell with this ``accounting`` reads.

    "whole_rounds": the last round of a text drafts as many tokens as any other, as in
    published code. "as_published": drafts beyond the end of the text count, too.
    """
    if accounting not in ("committed", "whole_rounds", "as_published"):
        raise BadValue(
            f"accounting is {accounting!r}: give 'committed', 'whole_rounds' or "
            "'as_published'"
        )
    if accounting == "as_published":
        return PUBLISHED.get(stat, stat)
    return stat


# -- of a cell's runs ------------------------------------------------------------------
def number_of(name: str, runs: CellRuns, scaled_tokens: int = 0) -> Number:
    """The statistic ``name`` of a cell's runs, with its confidence interval.

    Counts of passes are scaled to ``scaled_tokens``. Raises SpeclibError listing the
    known statistics if the name is unknown.
    """
    everything = range(len(runs.stats))
    compute = _geometric_mean if _is_over_plain(name, runs) else _of_sums
    value = compute(name, runs, scaled_tokens, everything)
    if name in SETTINGS:
        return Number(value)
    parts = _parts(runs)
    without = {}
    for label, left_out in parts.items():
        others = [number for number in everything if number not in left_out]
        is_something = bool(others)
        without[label] = (
            compute(name, runs, scaled_tokens, others) if is_something else float("nan")
        )
    return Number(
        value, without, n=len(parts), signed=name in SIGNED, is_busy=runs.is_busy
    )


def _is_over_plain(name: str, runs: CellRuns) -> bool:
    return runs.spec.kind != "virtual" and name in OVER_PLAIN


def _parts(runs: CellRuns) -> dict[str, set[int]]:
    """The sets of requests that are left out together, by label.

    A set has one request, unless there are more than 20 virtual ones: then request i of
    n is in part i * 20 // n. So cells with the same number of requests share labels.
    """
    count = len(runs.stats)
    if runs.spec.kind != "virtual" or count <= MOST_PARTS:
        return {label: {number} for number, label in enumerate(runs.labels)}
    parts: dict[str, set[int]] = {}
    for number in range(count):
        parts.setdefault(f"part {number * MOST_PARTS // count}", set()).add(number)
    return parts


def _geometric_mean(
    name: str, runs: CellRuns, scaled_tokens: int, numbers: Sequence[int]
) -> float:
    """exp of the mean, over requests, of the statistic's logarithm."""
    values = [_of_sums(name, runs, scaled_tokens, [number]) for number in numbers]
    known = [log(value) for value in values if isfinite(value) and value > 0]
    return exp(fsum(known) / len(known)) if known else float("nan")


def _of_sums(
    name: str, runs: CellRuns, scaled_tokens: int, numbers: Sequence[int]
) -> float:
    """The statistic of the sums over some requests."""
    stats = [runs.stats[number] for number in numbers]
    if name == SPEED_VARIANCE:
        speeds = [request.decode_speed for request in stats]
        return variance(speeds) if len(speeds) > 1 else float("nan")
    is_by_device = name == DEVICE_SECONDS
    devices = reserved_devices(runs.spec, runs.settings) if is_by_device else 1
    return _find(name)(
        Totals(
            _total(stats),
            _total([runs.baseline[number] for number in numbers]),
            runs.gamma,
            runs.c,
            scaled_tokens,
            devices,
        )
    )


def _total(requests: list[Counts]) -> Counts:
    return requests[0] if len(requests) == 1 else total(requests)


def _find(name: str) -> Statistic:
    if name not in STATISTICS:
        known = [*STATISTICS, SPEED_VARIANCE]
        raise unknown_name(f"unknown statistic {name!r}", name, known)
    return STATISTICS[name]
