"""Traces: what every device did and when, and the statistics counted from that alone.

An event is one operation on one device, or one commit. Times are seconds since the request began.
This module does not know methods, models or clocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Event(NamedTuple):
    """``propose``: ``tokens`` are the drafted ids and ``outcome`` says of each whether it was
    "accepted", "rejected" or never tested ("wasted"). ``score``: ``tokens`` are the ids fed, of
    which the last ``last`` are drafted. ``commit`` (on "controller"): the ids committed.
    ``kept`` and ``fed`` count the KV cache's tokens before the operation and those it added."""

    ts: float
    dur: float
    device: str
    op: str
    id: int
    round: int
    tokens: tuple[int, ...]
    outcome: tuple[str, ...]
    clock: str
    kept: int = 0
    fed: int = 0
    last: int = 0


@dataclass
class Trace:
    """The events of one request, in order of their ends; ``meta`` says what was run."""

    events: list[Event]
    meta: dict = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        return list(self.meta.get("devices") or sorted({e.device for e in self.operations}))

    @property
    def operations(self) -> list[Event]:
        return [e for e in self.events if e.op != "commit"]

    @property
    def commits(self) -> list[Event]:
        return [e for e in self.events if e.op == "commit"]

    @property
    def makespan(self) -> float:
        """Seconds from the request to the end of its last event."""
        return max((e.ts + e.dur for e in self.events), default=0.0)

    def busy(self, device: str) -> float:
        return sum(e.dur for e in self.operations if e.device == device)

    def to_json(self) -> str:
        return json.dumps({"meta": self.meta, "events": [e._asdict() for e in self.events]})

    @classmethod
    def from_json(cls, text: str) -> Trace:
        raw = json.loads(text)
        tuples = ("tokens", "outcome")
        return cls([Event(**{k: tuple(v) if k in tuples else v for k, v in e.items()})
                    for e in raw["events"]], raw["meta"])

    def save_perfetto(self, path: str | Path) -> None:
        """Writes Chrome trace-event JSON (microseconds), which ui.perfetto.dev opens."""
        lanes = {name: i for i, name in enumerate(["controller", *self.devices])}
        names = [{"ph": "M", "pid": 0, "tid": i, "name": "thread_name", "args": {"name": name}}
                 for name, i in lanes.items()]
        slices = [{"ph": "X", "pid": 0, "tid": lanes[e.device], "name": e.op, "ts": e.ts * 1e6,
                   "dur": e.dur * 1e6, "args": {"tokens": e.tokens, "outcome": e.outcome,
                                                "round": e.round, "kept": e.kept, "fed": e.fed}}
                  for e in self.events]
        Path(path).write_text(json.dumps({"traceEvents": names + slices}))


@dataclass(frozen=True)
class Stats:
    """Counts and seconds of one request, or their sums over several; ratios are properties.

    Every ratio is defined here, once. Seconds are of the trace's clock: never add kinds.
    """

    requests: int = 0
    tokens: int = 0             # committed
    first_tokens: int = 0       # of those, in the first commit
    seconds: float = 0.0        # request to last commit
    ttft: float = 0.0           # request to first commit
    rounds: int = 0             # commits: iterations of the method's loop
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    draft_runs: int = 0         # forward passes
    target_runs: int = 0
    draft_seconds: float = 0.0  # busy
    target_seconds: float = 0.0

    def __add__(self, other: Stats) -> Stats:
        return Stats(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

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
    drafts = [e for e in trace.operations if e.op == "propose"]
    scores = [e for e in trace.operations if e.op == "score"]
    outcomes = [o for e in drafts for o in e.outcome]
    return Stats(
        requests=1,
        tokens=sum(len(e.tokens) for e in commits),
        first_tokens=len(commits[0].tokens) if commits else 0,
        seconds=commits[-1].ts if commits else 0.0,
        ttft=commits[0].ts if commits else 0.0,
        rounds=len(trace.commits),
        drafted=len(outcomes),
        accepted=outcomes.count("accepted"),
        rejected=outcomes.count("rejected"),
        draft_runs=sum(len(e.tokens) for e in drafts),
        target_runs=len(scores),
        draft_seconds=sum(e.dur for e in drafts),
        target_seconds=sum(e.dur for e in scores))
