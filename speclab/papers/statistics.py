"""What a table's cell asks of its runs: named statistics.

Every function marked ``@statistic`` is one that a table's ``stat`` or ``metric`` may
name. It reads the counts of runs, those of what they are compared with on the same
requests, and the draft length and cost ratio. The counts are those of
``speclib.trace.metrics``.

A statistic is taken of the sums over all requests: tokens of all over seconds of all,
for instance. What is over plain decoding is, of timed runs, the geometric mean over the
prompts instead (``OVER_PLAIN``): each prompt's method over the same prompt's plain
decoding, both of one minute. How sure a number is, ``numbers`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum, isfinite, log
from statistics import variance

from speclab.runs.rows import CellRuns
from speclib.errors import BadValue, unknown_name
from speclib.trace.metrics import Stats, total

from .devices import reserved_devices
from .numbers import Number


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


SETTINGS = ("gamma", "c")  # statistics that no request changes
SIGNED = ("lent_share", "communication_per_step")  # those that are differences
SPEED_VARIANCE = "speed_variance"  # of the requests' own speeds, not of their sums

# Of timed runs the geometric mean over prompts.
OVER_PLAIN = (
    "speedup",
    "speedup_e2e",
    "published_speedup",
    "ttft_over_plain",
    "passes",
)
MOST_PARTS = 20  # of requests of the virtual clock, which an interval tells apart

# What accounting = "as_published" makes of a statistic.
PUBLISHED = {"speedup": "published_speedup", "decode_speed": "published_speed"}


def apply_accounting(stat: str, accounting: str) -> str:
    """The statistic that a cell with this ``accounting`` reads.

    "whole_rounds": the last round of a text drafts as many tokens as any other, as in
    published code. "as_published": and what it drafts beyond the text counts, too.
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
    """The statistic ``name`` of a cell's runs, and how sure it is.

    Counts of passes are scaled to ``scaled_tokens``. Raises SpeclibError listing the
    known statistics, if there is none of that name.
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
    """The requests that are left out together, by a label; each alone if there are few.

    Many of the virtual clock are some parts, request i in part i * 20 // n: the labels
    of two cells with as many requests are then the same.
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
    is_by_device = name == device_seconds_per_token.__name__
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


def _total(requests: list[Stats]) -> Stats:
    return requests[0] if len(requests) == 1 else total(requests)


def _find(name: str) -> Statistic:
    if name not in STATISTICS:
        known = [*STATISTICS, SPEED_VARIANCE]
        raise unknown_name(f"unknown statistic {name!r}", name, known)
    return STATISTICS[name]
