"""Traces: what every device did and when.

An event is one operation on one device, or one commit. Times are seconds since the request began.
This module does not know methods, models or clocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Event(NamedTuple):
    """``propose``: ``tokens`` are the drafted ids and ``outcome`` says of each whether it was
    "accepted", "rejected" or never tested ("wasted"). ``branch``: the same of ``sequences`` drafts
    of one length, one after another in ``tokens``; ``chances`` are theta and what the draft gave
    each one's first token; ``last`` of the tokens fed are drafted. ``grow``: the same of a tree,
    whose nodes follow their ``parents`` (-1: the text). ``lookup`` (on "controller"): of tokens
    that no model drafted; it takes no time. ``score``: ``tokens`` are the ids fed, of which the
    last ``last`` are candidates, and after the last of those the target ``said`` what it finds
    likeliest. ``commit`` (on "controller"): the ids committed at its end; it lasts
    from the last result in hand, so it is the time of verifying. ``kept`` and ``fed`` count the KV
    cache's tokens before the operation and those it added. ``overrun``: an emulated operation
    outlasted its latency. ``lost``: its device was lost by then, or failed in it. ``cancelled``:
    it ended before its time; it shows what it had drafted and fed until then."""

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
    overrun: bool = False
    lost: bool = False
    cancelled: bool = False
    sequences: int = 1
    chances: tuple[float, ...] = ()
    said: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()

    @property
    def end(self) -> float:
        return self.ts + self.dur

    @property
    def drafts(self) -> tuple[tuple[int, ...], ...]:
        """The drafted tokens by sequence."""
        each = len(self.tokens) // max(1, self.sequences)
        return tuple(
            self.tokens[i * each : (i + 1) * each] for i in range(self.sequences)
        )

    @property
    def ahead(self) -> tuple[int, ...]:
        """Of every drafted token: how many of its own sequence or tree come before it."""
        if not self.parents:
            return tuple(i for draft in self.drafts for i in range(len(draft)))
        found = []
        for parent in self.parents:
            found.append(found[parent] + 1 if parent >= 0 else 0)
        return tuple(found)


@dataclass
class Trace:
    """The events of one request, in order of their ends; ``meta`` says what was run."""

    events: list[Event]
    meta: dict = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        return list(
            self.meta.get("devices") or sorted({e.device for e in self.operations})
        )

    @property
    def operations(self) -> list[Event]:
        """What devices did."""
        return [e for e in self.events if e.device != "controller"]

    @property
    def commits(self) -> list[Event]:
        return [e for e in self.events if e.op == "commit"]

    @property
    def makespan(self) -> float:
        """Seconds from the request to the end of its last event."""
        return max((e.end for e in self.events), default=0.0)

    def busy(self, device: str) -> float:
        return sum(e.dur for e in self.operations if e.device == device)

    def to_json(self) -> str:
        return json.dumps(
            {"meta": self.meta, "events": [e._asdict() for e in self.events]}
        )

    @classmethod
    def from_json(cls, text: str) -> Trace:
        raw = json.loads(text)
        tuples = ("tokens", "outcome", "chances", "said", "parents")
        return cls(
            [
                Event(**{k: tuple(v) if k in tuples else v for k, v in e.items()})
                for e in raw["events"]
            ],
            raw["meta"],
        )

    def save_perfetto(self, path: str | Path) -> None:
        """Writes Chrome trace-event JSON (microseconds), which ui.perfetto.dev opens."""
        lanes = {name: i for i, name in enumerate(["controller", *self.devices])}
        names = [
            {
                "ph": "M",
                "pid": 0,
                "tid": i,
                "name": "thread_name",
                "args": {"name": name},
            }
            for name, i in lanes.items()
        ]
        slices = [
            {
                "ph": "X",
                "pid": 0,
                "tid": lanes[e.device],
                "name": e.op,
                "ts": e.ts * 1e6,
                "dur": e.dur * 1e6,
                "args": {
                    "tokens": e.tokens,
                    "outcome": e.outcome,
                    "round": e.round,
                    "kept": e.kept,
                    "fed": e.fed,
                },
            }
            for e in self.events
        ]
        Path(path).write_text(json.dumps({"traceEvents": names + slices}))
