"""What stands in the lanes of a timeline: each operation as cells, each with its tooltip.

Knows no markup, no notebook, and nothing of what is stacked above or below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from speclib.trace.events import Event
from speclib.trace.rounds import DRAFTING
from speclib.views.numbers import MILLISECONDS, SECONDS, duration
from speclib.views.text import one_line, token_label

from .run import TimelineRun, chosen_sequence
from .shapes import Box, Lane, TimeAxis


def tip_of(run: TimelineRun, event: Event, axis: TimeAxis, *lines: str) -> str:
    start = axis.time(event.ts)
    lasts = duration(event.dur, MILLISECONDS if event.dur < 1 else SECONDS)
    cache = f"KV cache: {event.kept} kept, {event.fed} fed"
    return "\n".join(
        [
            *lines,
            f"{event.device}, round {event.round}",
            f"starts at {start}, takes {lasts}",
            cache,
        ]
    )


def proposal(run: TimelineRun, event: Event, axis: TimeAxis) -> Iterator[Box]:
    """One cell per drafted token, an equal share of the duration each."""
    width = axis.x(event.dur) / max(1, len(event.tokens))
    for i, (token, outcome) in enumerate(zip(event.tokens, event.outcome, strict=True)):
        why = {"wasted": "wasted: never tested"}.get(outcome, outcome)
        part = event._replace(
            ts=event.ts + event.dur * i / len(event.tokens),
            dur=event.dur / len(event.tokens),
        )
        tip = tip_of(
            run,
            part,
            axis,
            f"drafted “{one_line(run.piece(token))}” (id {token}): {why}",
            f"token {i + 1} of {len(event.tokens)}",
        )
        yield Box(outcome, axis.x(part.ts), width, token_label(run.piece(token)), tip)
    if not event.tokens:
        yield Box(
            "unused",
            axis.x(event.ts),
            axis.x(event.dur),
            "",
            tip_of(run, event, axis, "drafting, cancelled"),
        )


def branching(run: TimelineRun, event: Event, axis: TimeAxis) -> Iterator[Box]:
    """A row of cells per sequence, the likeliest on top; those that did not go on are ``dropped``.
    All sequences share the duration: nothing says in which order they were written."""
    taken = chosen_sequence(event)
    lead, tested = taken or 0, "wasted" != event.outcome[0] or taken is not None
    for row, tokens in enumerate(event.drafts):
        each = len(tokens)
        part = event._replace(
            tokens=tokens, outcome=event.outcome[row * each : (row + 1) * each]
        )
        begins = "the target chose another" if tested and row != lead else ""
        for box in proposal(run, part, axis):
            tip = f"sequence {row + 1} of {len(event.drafts)}"
            tip += f": {begins}" if begins else ""
            yield box._replace(
                kind=box.kind if row == lead else "dropped",
                tip=f"{box.tip}\n{tip}",
                row=row,
                rows=len(event.drafts),
            )


def growing(run: TimelineRun, event: Event, axis: TimeAxis) -> Iterator[Box]:
    """A tree: per level a cell, the node that passed or else the first one, and below it how many
    others there are. All levels get an equal share of the duration: nothing tells them apart."""
    levels = event.ahead
    for level in range(max(levels) + 1):
        nodes = [node for node, ahead in enumerate(levels) if ahead == level]
        lead = next((x for x in nodes if event.outcome[x] != "wasted"), nodes[0])
        others = [run.piece(event.tokens[node]) for node in nodes if node != lead]
        part = event._replace(
            tokens=(event.tokens[lead],),
            outcome=(event.outcome[lead],),
            ts=event.ts + event.dur * level / (max(levels) + 1),
            dur=event.dur / (max(levels) + 1),
        )
        (box,) = proposal(run, part, axis)
        tip = f"{box.tip.splitlines()[0]}\nlevel {level + 1} of {max(levels) + 1}"
        yield box._replace(rows=rows_of([event]), tip=tip)
        if others:
            yield box._replace(
                kind="dropped",
                row=1,
                rows=2,
                label=f"+ {len(others)}",
                tip=(
                    f"level {level + 1}, not on the way: " + one_line(" |".join(others))
                ),
            )


def rows_of(events: Iterable[Event]) -> int:
    """The most sequences that were drafted at once; a tree that branches takes two rows."""
    return max(
        (
            2
            if e.op == "grow" and len(e.tokens) > max(e.ahead, default=0) + 1
            else e.sequences
            for e in events
        ),
        default=1,
    )


def scoring(
    run: TimelineRun, event: Event, axis: TimeAxis, used: bool, grown: bool
) -> Box:
    """A target pass; ``unused`` when it failed, was cancelled, came too late or was of a text that
    was not to be. ``grown``: of a tree, whose tokens are no text."""
    tested = [run.piece(t) for t in event.tokens[len(event.tokens) - event.last :]]
    what = "target pass: one row, for the next token"
    if tested:
        what = (
            f"target pass: verifies {len(tested)} drafted\n“"
            + one_line("".join(tested))
            + "”"
        )
    label = (
        f"{len(tested)} candidates" if grown else one_line("".join(tested).strip(" "))
    )
    note = [] if used else ["its result was not used"]
    return Box(
        "score" if used else "unused",
        axis.x(event.ts),
        axis.x(event.dur),
        label,
        tip_of(run, event, axis, what, *note),
    )


def lane(
    run: TimelineRun, device: str, y: float, height: float, axis: TimeAxis
) -> Lane:
    """The device's operations and, between them, its waiting, up to the run's end or its own."""
    last = max((e.end for e in run.trace.commits), default=0.0) * (1 + 1e-9)
    boxes, free, stale = [], 0.0, run.stale_passes(device)
    ends = run.lost.get(device, run.seconds)
    trees = {e.round for e in run.trace.operations if e.op == "grow"}
    events = sorted(
        (e for e in run.trace.operations if e.device == device and e.ts < ends),
        key=lambda e: e.ts,
    )
    for event in [*events, None]:
        start = ends if event is None else event.ts
        if start - free > axis.span * 1e-6:
            tip = f"{device} waits {axis.time(start - free)}\nfrom {axis.time(free)}"
            boxes.append(Box("idle", axis.x(free), axis.x(start - free), "", tip))
        if event is None or event.ts >= axis.span:
            break
        free = max(free, event.ts + event.dur)
        boxes += (
            branching(run, event, axis)
            if event.sequences > 1
            else growing(run, event, axis)
            if event.op == "grow" and event.tokens
            else proposal(run, event, axis)
            if event.op in DRAFTING
            else [
                scoring(
                    run,
                    event,
                    axis,
                    event.tokens and event.end <= last and event.id not in stale,
                    event.round in trees,
                )
            ]
        )
    if ends < run.seconds:
        boxes.append(
            Box(
                "lost",
                axis.x(ends),
                axis.x(run.seconds - ends),
                "lost",
                f"{device} was lost at {axis.time(ends)}",
            )
        )
    return Lane(device, y, height, tuple(boxes))
