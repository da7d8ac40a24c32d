"""Up to how many requests at a time a method would stay faster than plain decoding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from speclab.theory.closed_forms import batch_that_stops_paying
from speclib.data.latency import Curve
from speclib.trace.events import COMMIT, Trace


def going_on(curve: Curve) -> Curve:
    """``curve``, which beyond its last point goes on as from its first one to there."""
    first, most = curve.forward[0], curve.forward[-1]
    if first == most:
        return curve
    per_token = max(0.0, (most[1] - first[1]) / (most[0] - first[0]))
    points = [(fed, seconds - per_token * fed) for fed, seconds in curve.forward]
    return replace(curve, forward=tuple(points), per_token=per_token)


def batch_limit(traces: Iterable[Trace], target: Curve) -> float:
    """B* of what runs did alone, with passes that last as ``target`` says.

    Passes over more tokens than ``target`` knows are taken to go on in a straight line,
    and the draft's to last as long however many requests they serve: so it is the most
    that can be hoped for. Infinite where longer passes cost nothing.
    """
    committed, seconds, fed, scoring_seconds, passes = 0, 0.0, 0, 0.0, 0
    for trace in traces:
        for event in trace.events:
            committed += len(event.tokens) if event.op == COMMIT else 0
            if event.is_scoring and event.kept:
                fed += event.fed
                scoring_seconds += event.dur
                passes += 1
        seconds += max(event.end for event in trace.events)
    if not passes:
        return 0.0

    costs = going_on(target)
    return batch_that_stops_paying(
        tokens=committed / passes,
        rows=fed / passes,
        fixed=target(1) - costs.per_token,
        per_token=costs.per_token,
        draft=max(0.0, seconds - scoring_seconds) / passes,
    )
