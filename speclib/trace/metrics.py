"""Statistics of a request, counted from its trace alone.

Every ratio of the project is defined here, once. Knows no method, model or clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from speclib.arguments import checked

from .events import Event, Trace
from .rounds import step_times, with_tail


@dataclass(frozen=True)
class Stats:
    """Counts and seconds of one request, or their sums over several.

    Ratios are properties. Seconds are those of the trace's clock: kinds are never
    added.
    """

    requests: int = 0
    tokens: int = 0  # committed
    first_tokens: int = 0  # of those, in the first commit
    seconds: float = 0.0  # from the request to the last commit
    ttft: float = 0.0  # from the request to the first commit
    rounds: int = 0  # commits: iterations of the method's loop
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    draft_runs: int = 0  # forward passes
    target_runs: int = 0
    draft_seconds: float = 0.0  # in which the device is busy
    target_seconds: float = 0.0
    operations: int = 0
    caught_up: int = 0  # tokens a target fed only because another target had seen them
    overruns: int = 0  # emulated operations that outlasted their latency

    # The rounds after the first, which alone prefills; see rounds.StepTimes.
    steps: int = 0
    step_seconds: float = 0.0
    step_busy: float = 0.0
    step_draft: float = 0.0
    step_target: float = 0.0
    step_verify: float = 0.0

    # As published code counts, unverified drafts included; see rounds.with_tail.
    with_tail: int = 0
    with_tail_seconds: float = 0.0

    def __add__(self, other: Stats) -> Stats:
        return total([self, other])

    @property
    def acceptance_rate(self) -> float:
        """accepted / tested: the alpha of every formula."""
        return _ratio(self.accepted, self.accepted + self.rejected)

    @property
    def drafts_used(self) -> float:
        """accepted / drafted."""
        return _ratio(self.accepted, self.drafted)

    @property
    def mat(self) -> float:
        """Mean accepted tokens per target forward pass, the bonus not counted."""
        return _ratio(self.accepted, self.target_runs)

    @property
    def run_length(self) -> float:
        """Mean accepted tokens between two rejections, over any number of passes."""
        return _ratio(self.accepted, self.rejected)

    @property
    def decode_speed(self) -> float:
        """Committed tokens per second after the first commit."""
        return _ratio(self.tokens - self.first_tokens, self.seconds - self.ttft)

    @property
    def decode_speed_e2e(self) -> float:
        """Committed tokens per second, prefill included."""
        return _ratio(self.tokens, self.seconds)

    @property
    def published_speed(self) -> float:
        """Tokens per second as the published code of PEARL and DuoDecoding counts them.

        Prefill and unverified drafts are included; those beyond the limit only in a
        trace that was cut out of a longer one.
        """
        return _ratio(self.with_tail, self.with_tail_seconds)

    @property
    def inflation(self) -> float:
        """The published speed over the committed one, prefill included in both.

        It tells how much of a published number the counting adds.
        """
        return _ratio(self.published_speed, self.decode_speed_e2e)

    @property
    def drafted_per_round(self) -> float:
        """Tokens that the target is offered per iteration.

        Plain decoding drafts nothing; it processes one token, its own.
        """
        return _ratio(self.drafted, self.rounds) if self.drafted else 1.0

    @property
    def tpot(self) -> float:
        """Seconds per output token after the first commit."""
        return _ratio(self.seconds - self.ttft, self.tokens - self.first_tokens)

    @property
    def tokens_per_target_run(self) -> float:
        """Committed tokens per target forward pass."""
        return _ratio(self.tokens, self.target_runs)

    @property
    def device_seconds_per_token(self) -> float:
        """Seconds in which a device works, per committed token."""
        return _ratio(self.draft_seconds + self.target_seconds, self.tokens)

    @property
    def communication(self) -> float:
        """Seconds per step in which no device computes and nothing is verified."""
        return self.per_step(self.step_seconds - self.step_busy - self.step_verify)

    def per_100(self, seconds: float) -> float:
        """Seconds of the steps per 100 tokens that they commit."""
        return 100 * _ratio(seconds, self.tokens - self.first_tokens)

    def per_step(self, seconds: float) -> float:
        """Seconds of the steps over their number."""
        return _ratio(seconds, self.steps)


def _ratio(a: float, b: float) -> float:
    return a / b if b else float("nan")


def total(many: Iterable[Stats]) -> Stats:
    """The sums over several requests; the ratios of a sum are micro averages."""
    rows = [vars(stats).values() for stats in many]
    return Stats(*map(sum, zip(*rows, strict=True)))


@checked
def stats(trace: Trace) -> Stats:
    """Counts one request's trace."""
    commits = [commit for commit in trace.commits if commit.tokens]
    draftings = [event for event in trace.operations if event.is_drafting]
    scorings = [event for event in trace.operations if event.is_scoring]
    outcomes: list[str] = []  # of lookups too, which no model ran for
    for event in trace.events:
        outcomes += event.outcome
    published = with_tail(trace)
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
        **vars(step_times(trace)),
        with_tail=published.tokens,
        with_tail_seconds=published.seconds,
    )


def _caught_up(scorings: list[Event]) -> int:
    """Tokens that a target fed only because another target had seen them.

    A pass feeds its candidates and one token more; what it feeds beyond that is
    catching up. The pass that starts a text is prefill, and a single target never
    catches up.
    """
    if len({event.device for event in scorings}) < 2:
        return 0
    caught_up = 0
    for event in scorings:
        if event.kept:
            caught_up += max(0, event.fed - event.candidates - 1)
    return caught_up
