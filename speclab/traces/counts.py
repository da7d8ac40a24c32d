"""Counts for papers' tables, in addition to the ``Stats`` of a request.

They record how a request's rounds spend their time, and how many tokens published code
would count. This module does not depend on the method, the models or the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from speclib.trace.events import COMMIT, CONTROLLER, Event, Trace
from speclib.trace.metrics import Stats, ratio, stats


@dataclass(frozen=True)
class Counts(Stats):
    """Stats, plus counts of the rounds after the first, and the published accounting.

    ``steps``: the number of rounds after the first, which does the prefill.
    ``step_seconds``: the time from the end of the first round to the end of the last.
    During this time, at least one device was busy for ``step_busy`` seconds, the draft
    for ``step_draft``, and the target for ``step_target``; verification took
    ``step_verify``.

    ``with_tail``, ``with_tail_seconds``: see the function ``with_tail``.
    """

    steps: int = 0
    step_seconds: float = 0.0
    step_busy: float = 0.0
    step_draft: float = 0.0
    step_target: float = 0.0
    step_verify: float = 0.0

    with_tail: int = 0
    with_tail_seconds: float = 0.0

    @property
    def published_speed(self) -> float:
        """Tokens per second as the published code of PEARL and DuoDecoding counts them.

        The time includes the prefill, and the tokens include unverified drafts. Drafts
        beyond the limit are included only if the trace was cut out of a longer one.
        """
        return ratio(self.with_tail, self.with_tail_seconds)

    @property
    def inflation(self) -> float:
        """The published speed over the speed of committed tokens, both with prefill.

        The published code's way of counting overstates the speed by this factor.
        """
        return ratio(self.published_speed, self.decode_speed_e2e)

    @property
    def communication(self) -> float:
        """Seconds per step in which no device computes and nothing is verified."""
        return self.per_step(self.step_seconds - self.step_busy - self.step_verify)

    def per_100(self, seconds: float) -> float:
        """These ``seconds`` of the steps, per 100 tokens that the steps commit."""
        return 100 * ratio(seconds, self.tokens - self.first_tokens)

    def per_step(self, seconds: float) -> float:
        """These ``seconds`` of the steps, per step."""
        return ratio(seconds, self.steps)


def counts_of(trace: Trace) -> Counts:
    """The counts of a request's trace."""
    ends = [commit.end for commit in trace.commits] or [0.0]
    steps = len(ends) - 1
    later = [event for event in trace.events if steps and event.round > 0]

    def seconds(belongs: Callable[[Event], bool]) -> float:
        return sum(event.dur for event in later if belongs(event))

    published = with_tail(trace)
    return Counts(
        **vars(stats(trace)),
        steps=steps,
        step_seconds=ends[-1] - ends[0],
        step_busy=_busy_seconds(later, ends[0], ends[-1]),
        step_draft=seconds(lambda event: event.is_drafting),
        step_target=seconds(lambda event: event.is_scoring),
        step_verify=seconds(lambda event: event.op == COMMIT),
        with_tail=published.tokens,
        with_tail_seconds=published.seconds,
    )


def _busy_seconds(events: list[Event], start: float, end: float) -> float:
    """Seconds between ``start`` and ``end`` when at least one device works."""
    busy, covered_until = 0.0, start
    on_devices = [event for event in events if event.device != CONTROLLER]
    for event in sorted(on_devices, key=lambda event: event.ts):
        busy += max(0.0, min(event.end, end) - max(event.ts, covered_until))
        covered_until = max(covered_until, event.end)
    return busy


# -- the published accounting ----------------------------------------------------------
class TokensInTime(NamedTuple):
    """A token count at a point in time."""

    tokens: int
    seconds: float


def with_tail(trace: Trace) -> TokensInTime:
    """How many tokens the published code of PEARL and DuoDecoding counts, and when.

    The published code stops at the first commit after which the committed tokens plus
    the drafts that still wait for the target reach the limit. Without such a commit, it
    stops at the last commit with tokens.

    The published code drafts beyond the limit and counts these drafts. Our devices
    never draft beyond a request's end; to get the same tail, cut a longer request.
    """
    limit = trace.meta.get("limit", float("inf"))
    committed, at = 0, 0.0
    tails = _unverified_after_each_commit(trace, limit)
    for commit, tail in zip(trace.commits, tails, strict=True):
        if commit.tokens:
            committed += len(commit.tokens)
            at = commit.end
        if committed + tail >= limit:
            return TokensInTime(committed + tail, commit.end)
    return TokensInTime(committed, at)


def _unverified_after_each_commit(trace: Trace, limit: float) -> list[int]:
    """How many drafted tokens still wait for the target after each commit.

    These are the drafts that the next round's first pass tests, unless that round
    drafted them. If the last commit reached the limit, there is no next round. Then
    they are the drafts made during the last pass, after an accepted first token.
    """
    if not trace.commits:
        return []

    rounds: list[list[Event]] = [[] for _ in range(len(trace.commits) + 1)]
    for event in trace.operations:
        rounds[min(event.round, len(rounds) - 1)].append(event)

    tails = []
    for number in range(len(trace.commits) - 1):
        tails.append(_left_to_the_next(rounds[number], rounds[number + 1]))

    committed = sum(len(commit.tokens) for commit in trace.commits)
    last_round = rounds[-2]
    tails.append(_drafted_during(last_round) if committed == limit else 0)
    return tails


def _left_to_the_next(this_round: list[Event], next_round: list[Event]) -> int:
    """How many of this round's drafts the next round's pass tests.

    Operations are numbered in the order of submission. So no clock is needed to
    distinguish drafts made before a pass, which scores them, from drafts made during
    the pass.
    """
    target_pass = _first_pass(next_round)
    if target_pass is None:
        return 0
    has_drafted = any(event.is_drafting for event in this_round)
    is_of_next_round = any(
        event.is_drafting and event.id < target_pass.id for event in next_round
    )
    return target_pass.tested if has_drafted and not is_of_next_round else 0


def _drafted_during(last_round: list[Event]) -> int:
    """How many drafts made in the last round's pass continue an accepted token."""
    target_pass = _first_pass(last_round)
    if target_pass is None:
        return 0
    tail = 0
    for event in last_round:
        is_during = event.is_drafting and event.id > target_pass.id
        if is_during and "accepted" in event.first_outcomes:
            tail += len(event.sequences[0]) - 1
    return tail


def _first_pass(events: list[Event]) -> Event | None:
    """The target pass that was submitted first."""
    passes = [event for event in events if event.is_scoring]
    return min(passes, key=lambda event: event.id, default=None)
