"""Trace events made by hand, each with the payload of its operation."""

from __future__ import annotations

from speclib.operations.draft_sequences import DraftedSequences
from speclib.operations.draft_tree import DraftedTree
from speclib.operations.payload import DraftPayload, Payload
from speclib.operations.score import Scored, ScoredTree
from speclib.trace.events import Event


def event_of(
    ts,
    dur,
    device,
    op,
    id,
    round,
    tokens,
    outcome,
    clock,
    kept=0,
    fed=0,
    last=0,
    *,
    sequences=1,
    chances=(),
    parents=(),
) -> Event:
    """Returns a trace event.

    last: the number of candidates scored, or of drafts fed while drafting.
    chances: theta, then the draft's probability of the first token of each sequence.
    """
    threshold = chances[0] if chances else 0.0
    payloads = {
        "propose": DraftPayload(),
        "draft_sequences": DraftedSequences(
            sequences, last, threshold, tuple(chances[1:])
        ),
        "draft_tree": DraftedTree(tuple(parents), last),
        "score": Scored(last),
        "score_tree": ScoredTree(last, tuple(parents)),
    }
    payload = payloads.get(op, Payload())
    return Event(
        ts, dur, device, op, id, round, tokens, outcome, clock, kept, fed, payload
    )
