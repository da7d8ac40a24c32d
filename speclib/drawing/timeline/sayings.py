"""What a timeline says about its runs in words: facts beside a panel, a summary.

Every ratio is one of ``trace.metrics.Stats``; shares of idle time are of the makespan.
The speed beside a panel is that of what the panel shows: all tokens over the time until
the last of them, so that it agrees with the length of the bars. Tables also have the
speed after the first commit, which is what papers compare. Knows no picture, method,
clock or notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

from speclib.drawing.numbers import MILLISECONDS, Unit, duration, number, percent

from .run import TimelineRun


def speedup_as_drawn(
    run: TimelineRun, runs: Sequence[TimelineRun], base: str = "autoregressive"
) -> float:
    """Speed of ``run`` over that of the method ``base``, both from the request on.

    Where both write equally many tokens, it is how many times as long the bars of
    ``base`` are. Not-a-number where ``runs`` has no such run of ``base``.
    """
    for other in runs:
        if other.trace.meta.get("method") == base and other.kind == run.kind:
            return run.stats.decode_speed_e2e / other.stats.decode_speed_e2e
    return nan


def speedup(
    run: TimelineRun, runs: Sequence[TimelineRun], base: str = "autoregressive"
) -> float:
    """Speed of ``run`` over that of ``base`` after the first commit, as in papers.

    Not-a-number where ``runs`` has no such run of ``base``.
    """
    for other in runs:
        if other.trace.meta.get("method") == base and other.kind == run.kind:
            return run.stats.decode_speed / other.stats.decode_speed
    return nan


def untested_share(run: TimelineRun) -> float:
    """Share of the drafts that no target tested; not-a-number without drafts."""
    if not run.stats.drafted:
        return nan
    tested = run.stats.accepted + run.stats.rejected
    return 1 - tested / run.stats.drafted


def idle_shares(run: TimelineRun) -> str:
    """How long the draft's device and the target's wait: "draft 12 %, target 40 %".

    Several servers of the target count as one, by their mean.
    """
    shares_by_role: dict[str, list[float]] = {}
    for device in run.devices:
        role = device.split("-")[0]
        shares_by_role.setdefault(role, []).append(run.idle_share(device))

    texts = []
    for role, shares in shares_by_role.items():
        texts.append(f"{role} {percent(sum(shares) / len(shares))}")
    return ", ".join(texts)


def fact_lines(
    run: TimelineRun, runs: Sequence[TimelineRun], unit: Unit
) -> tuple[str, ...]:
    """The lines beside a run's panel; the first is the headline."""
    stats = run.stats
    headline = f"{number(stats.decode_speed_e2e)} tok/s"
    ratio = speedup_as_drawn(run, runs)
    if isfinite(ratio) and stats.drafted:
        headline += f" · {ratio:.2f}× plain"

    lines = [headline, f"{stats.tokens} tokens in {duration(stats.seconds, unit)}"]
    if stats.drafted:
        tested = stats.accepted + stats.rejected
        lines.append(f"{stats.accepted} of {tested} tested accepted")
        lines.append(f"{discarded_tokens(run)} discarded untested")
    lines.append(f"waits: {idle_shares(run)}" if run.devices else "no operations")
    if run.clock_error:
        lines.append(f"clocks agree to ± {duration(run.clock_error, MILLISECONDS)}")
    return tuple(lines)


def summary(runs: Sequence[TimelineRun], unit: Unit) -> str:
    """All runs in plain text: what a terminal, a test or a diff sees.

    The same for the same traces.
    """
    plural = "" if len(runs) == 1 else "s"
    lines = [f"timeline of {len(runs)} run{plural}"]
    for run in runs:
        lines += run_summary(run, unit)
    return "\n".join(lines)


def run_summary(run: TimelineRun, unit: Unit) -> list[str]:
    """One run's lines of the summary."""
    stats = run.stats
    makespan = duration(run.seconds, unit)
    lines = [
        f"{run.title}: makespan {makespan} [{run.kind}], {stats.tokens} tokens, "
        f"{number(stats.decode_speed_e2e)} tok/s in all, "
        f"{number(stats.decode_speed)} tok/s after the first commit"
    ]
    for device in run.devices:
        idle = run.idle_share(device)
        lines.append(f"  {device}: busy {percent(1 - idle)}, idle {percent(idle)}")
    if stats.drafted:
        lines.append(
            f"  drafted {stats.drafted}: accepted {stats.accepted}, "
            f"rejected {stats.rejected}, discarded {discarded_tokens(run)}"
        )
    return lines


def discarded_tokens(run: TimelineRun) -> int:
    """Drafted tokens that no target tested."""
    return run.stats.drafted - run.stats.accepted - run.stats.rejected
