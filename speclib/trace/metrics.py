"""Statistics of a request, computed only from its trace.

Every ratio that the project reports is defined here, once. This module uses no method,
model or clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

from speclib.arguments import checked

from .events import Event, Trace

AnyStats = TypeVar("AnyStats", bound="Stats")


@dataclass(frozen=True)
class Stats:
    """Counts and times of one request, or their sums over several.

    Ratios are properties. Times are in seconds, on the trace's clock; times of
    different kinds are never added.
    """

    requests: int = 0
    tokens: int = 0  # committed
    first_tokens: int = 0  # in the first commit
    seconds: float = 0.0  # from the request to the last commit
    ttft: float = 0.0  # from the request to the first commit
    rounds: int = 0  # iterations of the method's loop, each with a commit
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    draft_runs: int = 0  # forward passes
    target_runs: int = 0
    draft_seconds: float = 0.0  # busy time of devices
    target_seconds: float = 0.0
    operations: int = 0
    caught_up: int = 0  # tokens that another target had read first
    overruns: int = 0  # emulated operations that outlasted their latency

    def __add__(self, other: Self) -> Self:
        return total([self, other])

    @property
    def acceptance_rate(self) -> float:
        """accepted / tested: the alpha of every formula."""
        return ratio(self.accepted, self.accepted + self.rejected)

    @property
    def drafts_used(self) -> float:
        """accepted / drafted."""
        return ratio(self.accepted, self.drafted)

    @property
    def mat(self) -> float:
        """Mean accepted tokens per target forward pass, without the bonus token."""
        return ratio(self.accepted, self.target_runs)

    @property
    def run_length(self) -> float:
        """Mean accepted tokens between two rejections, over any number of passes."""
        return ratio(self.accepted, self.rejected)

    @property
    def decode_speed(self) -> float:
        """Committed tokens per second after the first commit."""
        return ratio(self.tokens - self.first_tokens, self.seconds - self.ttft)

    @property
    def decode_speed_e2e(self) -> float:
        """Committed tokens per second, prefill included."""
        return ratio(self.tokens, self.seconds)

    @property
    def drafted_per_round(self) -> float:
        """Drafted tokens per iteration.

        1 for plain decoding: it drafts nothing, and processes its own last token.
        """
        return ratio(self.drafted, self.rounds) if self.drafted else 1.0

    @property
    def tpot(self) -> float:
        """Seconds per output token after the first commit."""
        return ratio(self.seconds - self.ttft, self.tokens - self.first_tokens)

    @property
    def tokens_per_target_run(self) -> float:
        """Committed tokens per target forward pass."""
        return ratio(self.tokens, self.target_runs)

    @property
    def device_seconds_per_token(self) -> float:
        """The time that devices were busy per committed token, in seconds."""
        return ratio(self.draft_seconds + self.target_seconds, self.tokens)


def ratio(part: float, whole: float) -> float:
    """``part`` / ``whole``; NaN if ``whole`` is 0."""
    return part / whole if whole else float("nan")


def total(many: Iterable[AnyStats]) -> AnyStats:
    """The sum over one or more requests; its ratios are micro-averages."""
    requests = list(many)
    rows = [vars(stats).values() for stats in requests]
    return type(requests[0])(*map(sum, zip(*rows, strict=True)))


@checked
def stats(trace: Trace) -> Stats:
    """Computes the statistics of one request from its trace."""
    commits = [commit for commit in trace.commits if commit.tokens]
    draftings = [event for event in trace.operations if event.is_drafting]
    scorings = [event for event in trace.operations if event.is_scoring]
    outcomes: list[str] = []  # including lookups, which no model drafted
    for event in trace.events:
        outcomes += event.outcome
    return Stats(
        requests=1,
        tokens=sum(len(commit.tokens) for commit in commits),
        first_tokens=len(commits[0].tokens) if commits else 0,
        seconds=commits[-1].end if commits else 0.0,
        ttft=commits[0].end if commits else 0.0,
        rounds=len(trace.commits),
        drafted=len(outcomes),
        accepted=outcomes.count("accepted"),
        rejected=outcomes.count("rejected"),
        draft_runs=sum(event.pass_count for event in draftings),
        target_runs=len(scorings),
        draft_seconds=sum(event.dur for event in draftings),
        target_seconds=sum(event.dur for event in scorings),
        operations=len(trace.operations),
        caught_up=_caught_up(scorings),
        overruns=sum(event.overrun for event in trace.operations),
    )


def _caught_up(scorings: list[Event]) -> int:
    """How many tokens targets had to catch up on, as another target read them first.

    A pass feeds its candidates and one more token; any further tokens are catching up.
    The pass that starts a text is prefill, and a single target never catches up.
    """
    if len({event.device for event in scorings}) < 2:
        return 0
    caught_up = 0
    for event in scorings:
        if event.kept:
            caught_up += max(0, event.fed - event.tested - 1)
    return caught_up
