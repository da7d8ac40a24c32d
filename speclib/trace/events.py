"""Traces: what every device did and when.

An event is one operation on one device, or one step of the controller (a commit, or a
lookup of tokens that no model drafted). Times are seconds since the request began.

This module uses no method, model or clock.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from speclib.arguments import checked
from speclib.core.sampling import Tokens
from speclib.errors import BadValue
from speclib.operations import OPERATIONS
from speclib.operations.payload import Payload

CONTROLLER = "controller"  # the thread in which the method decides
COMMIT = "commit"
LOOKUP = "lookup"


class Event(NamedTuple):
    """One operation of one device, or one step of the controller.

    ``ts``, ``dur``: when it began and how long it took, in seconds. ``op``: the
    operation's name. ``id`` is unique in the trace; ``round`` counts the method's
    iterations.

    ``tokens``: the ids of the tokens that were drafted, fed to the target, or
    committed. A commit begins when the controller has the last result it needs, so it
    lasts as long as verification. A lookup takes no time.

    ``outcome``: for every drafted token "accepted", "rejected", or "discarded" (never
    tested).

    ``clock``: the kind of number: virtual, emulated or measured.

    ``kept``, ``fed``: tokens reused from the KV cache, and tokens added to it.

    ``sent``, ``received``: when the controller sent the question, and when it received
    the answer; None on a clock on which messages take no time.

    ``payload``: what is recorded for this kind of operation only. ``overrun``: an
    emulated operation outlasted its latency. ``lost``: its device was lost.
    ``cancelled``: it ended early; the event contains what was computed until then.
    """

    ts: float
    dur: float
    device: str
    op: str
    id: int
    round: int
    tokens: Tokens
    outcome: tuple[str, ...]
    clock: str
    kept: int = 0
    fed: int = 0
    payload: Payload = Payload()
    sent: float | None = None
    received: float | None = None
    overrun: bool = False
    lost: bool = False
    cancelled: bool = False

    @property
    def end(self) -> float:
        """When it ended, in seconds since the request began."""
        return self.ts + self.dur

    @property
    def message_seconds(self) -> float:
        """How long its two messages took: the total time minus the operation's."""
        if self.sent is None or self.received is None:
            return 0.0
        return self.received - self.sent - self.dur

    # Facts that depend on the kind of operation; see operations.payload.
    @property
    def is_drafting(self) -> bool:
        """Whether its tokens were written by the draft model."""
        return self.payload.is_drafting

    @property
    def is_scoring(self) -> bool:
        """Whether it is a pass of the target model."""
        return self.payload.is_scoring

    @property
    def tested(self) -> int:
        """How many of the last fed tokens the target was asked to test."""
        return self.payload.tested

    @property
    def pass_count(self) -> int:
        """The number of forward passes."""
        return self.payload.pass_count(self.tokens)

    @property
    def drafts_fed(self) -> int:
        """How many of the fed tokens the operation itself had drafted."""
        return self.payload.drafts_fed(self.tokens)

    @property
    def text_length(self) -> int:
        """The length of its text: all cached and fed tokens except its own drafts."""
        return self.kept + self.fed - self.drafts_fed

    @property
    def sequences(self) -> tuple[Tokens, ...]:
        """The drafted tokens of each sequence."""
        return self.payload.sequences(self.tokens)

    @property
    def first_outcomes(self) -> tuple[str, ...]:
        """What became of the first token of each drafted sequence."""
        if not self.tokens:
            return ()
        return self.outcome[:: len(self.sequences[0])]

    @property
    def depths(self) -> tuple[int, ...]:
        """How many of the event's tokens come before each drafted token on its path."""
        return self.payload.depths(self.tokens)

    @property
    def positions(self) -> tuple[int, ...]:
        """The position of each drafted token in the text, including the prompt."""
        places = self.payload.places(self.tokens)
        return tuple(self.text_length + place for place in places)


@dataclass
class Trace:
    """The events of one request, in the order in which they ended.

    ``meta``: the method, its settings and other facts about the run.
    """

    events: list[Event]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        """The names of all devices, including idle ones."""
        named = self.meta.get("devices")
        return list(named or sorted({event.device for event in self.operations}))

    @property
    def operations(self) -> list[Event]:
        """The events on devices, without the controller's."""
        return [event for event in self.events if event.device != CONTROLLER]

    @property
    def commits(self) -> list[Event]:
        """The commits: one event per round, even if nothing was committed."""
        return [event for event in self.events if event.op == COMMIT]

    @property
    def prompt_length(self) -> int:
        """The number of prompt tokens: all tokens before a target's first row."""
        lengths = [
            event.kept + event.fed - event.tested
            for event in self.operations
            if event.is_scoring and event.tokens
        ]
        return min(lengths, default=0)

    def draft_positions(self, became: str) -> set[int]:
        """The positions of drafts that ``became`` "accepted" or "rejected".

        Positions are in the text, including the prompt.
        """
        positions = set()
        for event in self.operations:
            if not event.is_drafting:
                continue
            for position, outcome in zip(event.positions, event.outcome, strict=True):
                if outcome == became:
                    positions.add(position)
        return positions

    @property
    def makespan(self) -> float:
        """The time from the request to the end of its last event, in seconds."""
        return max((event.end for event in self.events), default=0.0)

    def busy(self, device: str) -> float:
        """How long ``device`` was busy, in seconds."""
        return sum(event.dur for event in self.operations if event.device == device)

    def to_json(self) -> str:
        """The trace as text; ``from_json`` reads it."""
        events = []
        for event in self.events:
            events.append(event._asdict() | {"payload": asdict(event.payload)})
        return json.dumps({"meta": self.meta, "events": events})

    @classmethod
    @checked
    def from_json(cls, text: str) -> Trace:
        """The trace that ``to_json`` wrote. Raises BadValue for any other text."""
        try:
            raw = json.loads(text)
            return cls([_read_event(event) for event in raw["events"]], raw["meta"])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise BadValue(
                f"the text is not a trace ({type(error).__name__}: {error}): give what "
                "Trace.to_json wrote"
            ) from error


def _read_event(raw: dict[str, Any]) -> Event:
    """One event of a trace's JSON; lists become tuples again."""
    operation = OPERATIONS.get(raw["op"])
    payload_type = operation.payload_type if operation else Payload
    payload = payload_type(**_with_tuples(raw["payload"]))
    return Event(**_with_tuples(raw) | {"payload": payload})


def _with_tuples(raw: dict[str, Any]) -> dict[str, Any]:
    """The same with tuples instead of JSON's lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in raw.items()
    }
