"""Statistics of a request, counted from its trace alone; every ratio is defined here, once.

Knows no method, model or clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .events import Event, Trace
from .rounds import DRAFTING, steps, with_tail


@dataclass(frozen=True)
class Stats:
    """Counts and seconds of one request, or their sums over several; ratios are properties.

    Seconds are of the trace's clock: never add kinds.
    """

    requests: int = 0
    tokens: int = 0  # committed
    first_tokens: int = 0  # of those, in the first commit
    seconds: float = 0.0  # request to last commit
    ttft: float = 0.0  # request to first commit
    rounds: int = 0  # commits: iterations of the method's loop
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    draft_runs: int = 0  # forward passes
    target_runs: int = 0
    draft_seconds: float = 0.0  # busy
    target_seconds: float = 0.0
    operations: int = 0
    caught_up: int = 0  # tokens a target fed only because another target had seen them
    overruns: int = 0  # emulated operations that outlasted their latency
    # The rounds after the first, which alone prefills:
    steps: int = 0
    step_seconds: float = (
        0.0  # of these, any device busy, the draft's, the target's, verifying:
    )
    step_busy: float = 0.0
    step_draft: float = 0.0
    step_target: float = 0.0
    step_verify: float = 0.0
    # As published code counts: with the drafts that no target verified; see rounds.with_tail:
    with_tail: int = 0
    with_tail_seconds: float = 0.0

    def __add__(self, other: Stats) -> Stats:
        return Stats(
            *(a + b for a, b in zip(astuple(self), astuple(other), strict=True))
        )

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
        """Mean accepted tokens between two rejections, whatever the number of passes."""
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
        """Tokens per second as the published code of PEARL and DuoDecoding counts them: prefill
        and unverified drafts included."""
        return _ratio(self.with_tail, self.with_tail_seconds)

    @property
    def inflation(self) -> float:
        """That over committed tokens per second, prefill included: what the counting adds."""
        return _ratio(self.published_speed, self.decode_speed_e2e)

    @property
    def drafted_per_round(self) -> float:
        """Tokens that the target is offered per iteration; plain decoding processes its own."""
        return _ratio(self.drafted, self.rounds) if self.drafted else 1.0

    @property
    def tpot(self) -> float:
        """Seconds per output token after the first commit."""
        return _ratio(self.seconds - self.ttft, self.tokens - self.first_tokens)

    @property
    def tokens_per_target_run(self) -> float:
        return _ratio(self.tokens, self.target_runs)

    @property
    def device_seconds_per_token(self) -> float:
        return _ratio(self.draft_seconds + self.target_seconds, self.tokens)

    @property
    def communication(self) -> float:
        """Seconds per step in which no device computes and nothing is verified."""
        return self.per_step(self.step_seconds - self.step_busy - self.step_verify)

    def per_100(self, seconds: float) -> float:
        """Seconds of the steps per 100 tokens that they commit."""
        return 100 * _ratio(seconds, self.tokens - self.first_tokens)

    def per_step(self, seconds: float) -> float:
        return _ratio(seconds, self.steps)

    @property
    def draft_idle(self) -> float:
        """Share of the request's time in which the draft's device waits."""
        return 1 - _ratio(self.draft_seconds, self.seconds)

    @property
    def target_idle(self) -> float:
        """Share of the request's time in which the target's device waits."""
        return 1 - _ratio(self.target_seconds, self.seconds)


def astuple(stats: Stats) -> tuple:
    return tuple(getattr(stats, name) for name in Stats.__dataclass_fields__)


def _ratio(a: float, b: float) -> float:
    return a / b if b else float("nan")


def total(many: Iterable[Stats]) -> Stats:
    return sum(many, Stats())


def stats(trace: Trace) -> Stats:
    """Counts one request's trace."""
    commits = [e for e in trace.commits if e.tokens]
    drafts = [e for e in trace.operations if e.op in DRAFTING]
    scores = [e for e in trace.operations if e.op == "score"]
    shared = len({e.device for e in scores}) > 1  # between several targets
    outcomes = [
        o for e in trace.events for o in e.outcome
    ]  # of lookups too: no model ran
    return Stats(
        requests=1,
        tokens=sum(len(e.tokens) for e in commits),
        first_tokens=len(commits[0].tokens) if commits else 0,
        seconds=commits[-1].end if commits else 0.0,
        ttft=commits[0].end if commits else 0.0,
        rounds=len(trace.commits),
        drafted=len(outcomes),
        accepted=outcomes.count("accepted"),
        rejected=outcomes.count("rejected"),
        draft_runs=sum(passes(e) for e in drafts),
        target_runs=len(scores),
        draft_seconds=sum(e.dur for e in drafts),
        target_seconds=sum(e.dur for e in scores),
        operations=len(trace.operations),
        caught_up=sum(max(0, e.fed - e.last - 1) for e in scores if e.kept and shared),
        overruns=sum(e.overrun for e in trace.operations),
        **steps(trace),
        **dict(zip(("with_tail", "with_tail_seconds"), with_tail(trace), strict=True)),
    )


def passes(event: Event) -> int:
    """Forward passes of a drafting operation; each of several sequences has its own, each level of
    a tree one."""
    if event.op == "branch" and event.tokens:
        return event.last + 1
    return 1 + max(event.ahead, default=-1)
