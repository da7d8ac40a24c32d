"""What a timeline says about its runs: facts, a summary, and the story.

Every ratio comes from ``trace.metrics.Stats``; idle time is a share of the makespan.
The speed next to a panel is the number of tokens over the time of the last commit, so
it agrees with the length of the bars. Tables also show the speed after the first
commit, which papers compare. This module uses no picture, method, clock or notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import NamedTuple

from speclib.drawing.numbers import MILLISECONDS, Unit, duration, number, percent
from speclib.drawing.text_in_pictures import one_line

from .run import CommittedText, TimelineRun


def speedup_as_drawn(
    run: TimelineRun, runs: Sequence[TimelineRun], base: str = "autoregressive"
) -> float:
    """The speed-up of ``run`` over the method ``base``, including prefill.

    If both write the same number of tokens, it is the ratio of the bars' lengths. NaN
    if ``runs`` has no run of ``base`` with numbers of the same kind.
    """
    for other in runs:
        if other.trace.meta.get("method") == base and other.kind == run.kind:
            return run.stats.decode_speed_e2e / other.stats.decode_speed_e2e
    return nan


def idle_shares(run: TimelineRun) -> str:
    """The idle share of the draft's and the target's device: "draft 12 %, target 40 %".

    Several target servers are averaged.
    """
    shares_by_role: dict[str, list[float]] = {}
    for device in run.devices:
        role = device.split("-")[0]
        shares_by_role.setdefault(role, []).append(run.idle_share(device))

    texts = []
    for role, shares in shares_by_role.items():
        texts.append(f"{role} {percent(sum(shares) / len(shares))}")
    return ", ".join(texts)


def fact_lines(run: TimelineRun, runs: Sequence[TimelineRun], unit: Unit) -> list[str]:
    """The lines next to a run's panel; the first is the headline."""
    stats = run.stats
    headline = f"{number(stats.decode_speed_e2e)} tok/s"
    ratio = speedup_as_drawn(run, runs)
    if isfinite(ratio) and stats.drafted:
        slower = ratio < 1
        headline += f" · slower: {ratio:.2f}×" if slower else f" · {ratio:.2f}× plain"

    lines = [headline, f"{stats.tokens} tokens in {duration(stats.seconds, unit)}"]
    if stats.drafted:
        tested = stats.accepted + stats.rejected
        lines.append(f"{stats.accepted} of {tested} tested accepted")
        lines.append(f"{stats.drafted - tested} discarded untested")
    lines.append(f"waits: {idle_shares(run)}" if run.devices else "no operations")
    if run.clock_error:
        lines.append(f"clocks agree to ± {duration(run.clock_error, MILLISECONDS)}")
    return lines


def summary(runs: Sequence[TimelineRun], unit: Unit) -> str:
    """All runs in plain text, for a terminal; equal traces give equal text."""
    plural = "" if len(runs) == 1 else "s"
    lines = [f"timeline of {len(runs)} run{plural}"]
    for run in runs:
        facts = ", ".join(fact_lines(run, runs, unit))
        lines.append(f"{run.title} [{run.kind}]: {facts}")
    return "\n".join(lines)


# -- the story -------------------------------------------------------------------------
class Moment(NamedTuple):
    """A commit: its time in seconds, the text after the prompt, and what happened."""

    seconds: float
    text: str
    sentence: str


def story_of(run: TimelineRun) -> list[Moment]:
    """The moments of a run for the player: one for each commit, in order."""
    rejected = run.trace.draft_positions("rejected")
    position = run.trace.prompt_length
    text = ""
    moments = []
    for number_of_round, committed in enumerate(run.committed_texts(), 1):
        text += "".join(part.text for part in committed.parts)
        what_happened = _what_happened(committed, position, rejected)
        sentence = f"{run.label}, round {number_of_round}: {what_happened}"
        moments.append(Moment(committed.commit.end, one_line(text), sentence))
        position += len(committed.parts)
    return moments


def _what_happened(committed: CommittedText, position: int, rejected: set[int]) -> str:
    """One commit in words; ``position``: the position of its first token."""
    phrases = []
    drafts = [part.kind for part in committed.parts].count("draft")
    if drafts:
        plural = "" if drafts == 1 else "s"
        phrases.append(f"{drafts} draft{plural} accepted")
    for place, part in enumerate(committed.parts, position):
        if part.kind == "target":
            is_correction = place in rejected
            verb = "corrected to" if is_correction else "the target model wrote"
            phrases.append(f"{verb} “{one_line(part.text.strip())}”")
    return ", ".join(phrases) or "nothing is certain yet"
