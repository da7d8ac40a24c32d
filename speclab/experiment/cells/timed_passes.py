"""Seconds of passes on this machine, as a few requests show them.

Two things are timed that a latency file does not know. Devices that share a memory slow
each other down, so each pass has two times: while the other models rest, and while they
work. And between an operation's end and the next one's beginning stand messages and the
test of the drafts.

What it does not know: the slowdown is that of one draft beside one target, under PEARL.
With more targets it is greater. A method that overlaps for a moment is charged for
every pass. Of the draft, the pass that starts a text counts as any other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from speclib.core.counts import nearest_count
from speclib.data.latency import Curve, Latency
from speclib.decoding.decode import decode
from speclib.errors import SpeclibError
from speclib.operations.operation import Operation
from speclib.trace.events import Event, Trace
from speclib.worlds.world import World

# Drafts per round of the requests that time target passes over many tokens. The other
# methods that are timed feed many tokens at once to the draft (a level of a tree, a
# phrase) or to the target (guesses without a draft).
MANY_DRAFTS = (16, 48)
MOST_TOKENS = 48  # of such a request
LEAST_PASSES = 3  # of one length, for a median


@dataclass(frozen=True)
class TimedPasses:
    """How long operations last (see ``Durations``); ``message``: seconds beside each.

    ``passes``: of the models' passes.
    """

    passes: Latency
    message: float

    @property
    def c(self) -> float:
        return self.passes.c

    def seconds(self, device: str, op: Operation, kept: int, fed: int) -> float:
        """Seconds of an operation, with the messages around it."""
        return self.message + self.passes.seconds(device, op, kept, fed)


@dataclass(frozen=True)
class MachineTimes:
    """The same passes while the other devices rest, and while they work."""

    alone: TimedPasses
    together: TimedPasses


def time_passes(
    world: World,
    prompts: Sequence[Any],
    tokens: int = MOST_TOKENS,
    widest: int | None = None,
) -> MachineTimes:
    """Times the passes of an open world's models.

    They are those of requests of so many ``tokens``, on each of ``prompts``.
    ``widest``: about so many tokens are fed at once to the draft, where a method is to
    be judged that does so; None: no more than a narrow tree's.
    """
    matched = nearest_count(world.ratio)
    asked = Asked(world, prompts, tokens)
    plain = asked.traces("autoregressive")
    in_turns = list(plain)
    for gamma in sorted({matched, *MANY_DRAFTS}):
        if gamma <= tokens:
            in_turns += asked.traces("speculative", gamma=gamma)
    in_turns += asked.traces("tree", gamma=max(1, matched // 2), width=4)
    if widest is not None:
        in_turns += asked.traces("tree", gamma=max(2, matched), width=widest)
    in_turns += asked.traces("ouroboros", gamma=matched)
    in_turns += asked.traces("lookahead")
    at_once = asked.traces("pearl", gamma=matched)

    return times_of(in_turns, at_once, world.ratio)


def times_of(
    in_turns: Sequence[Trace], at_once: Sequence[Trace], ratio: float
) -> MachineTimes:
    """The seconds of passes in runs whose devices take turns, and work at once.

    ``ratio``: c, by which a draft pass is known of a target pass where no draft was
    asked.
    """
    target = _curve(_target_passes(in_turns))
    draft_passes = _draft_passes(in_turns) or _draft_passes(at_once)
    draft = Curve(((1, target(1) / ratio),))
    if draft_passes:
        draft = _curve(draft_passes)
    alone = Latency(draft=draft, target=target)
    together = Latency(
        draft=_stretched(alone.draft, _draft_passes(at_once)),
        target=_stretched(alone.target, _target_passes(at_once)),
    )
    message = median(map(_message_seconds, in_turns))
    return MachineTimes(TimedPasses(alone, message), TimedPasses(together, message))


@dataclass(frozen=True)
class Asked:
    """Requests of so many tokens on prompts, by one method after the other."""

    world: World
    prompts: Sequence[Any]
    tokens: int

    def traces(self, method: str, **settings: Any) -> list[Trace]:
        """What a method does; nothing where the pair cannot run it, as EAGLE's head."""
        try:
            return [
                decode(
                    prompt,
                    world=self.world,
                    method=method,
                    max_new_tokens=self.tokens,
                    **settings,
                ).trace
                for prompt in self.prompts
            ]
        except SpeclibError:
            return []


def _message_seconds(trace: Trace) -> float:
    """Between the passes of plain decoding, of which one follows the other."""
    gaps = []
    for before, after in pairwise(trace.operations):
        gaps.append(max(0.0, after.ts - before.end))
    return median(gaps) if gaps else 0.0


# -- passes ----------------------------------------------------------------------------
@dataclass(frozen=True)
class PassTime:
    """Seconds of a pass that was fed so many tokens; ``starts``: it starts a text."""

    fed: int
    seconds: float
    starts: bool


def _target_passes(traces: Iterable[Trace]) -> list[PassTime]:
    times = []
    for event in _finished(traces):
        if event.is_scoring:
            times.append(PassTime(event.fed, event.dur, event.kept == 0))
    return times


def _draft_passes(traces: Iterable[Trace]) -> list[PassTime]:
    """The mean pass of each draft, but of those that start a text."""
    times = []
    for event in _finished(traces):
        if event.is_drafting and event.pass_count and event.kept:
            fed = max(1, round(event.fed / event.pass_count))
            times.append(PassTime(fed, event.dur / event.pass_count, starts=False))
    return times


def _finished(traces: Iterable[Trace]) -> list[Event]:
    """Operations that ran to their end."""
    events: list[Event] = []
    for trace in traces:
        events += [event for event in trace.operations if not event.cancelled]
    return events


def _curve(times: Iterable[PassTime]) -> Curve:
    """Median seconds by tokens fed; the passes that start a text are apart.

    Lengths that were seen less than ``LEAST_PASSES`` times are left out, unless there
    are no others.
    """
    starts = []
    seconds_of: dict[int, list[float]] = defaultdict(list)
    for time in times:
        if time.starts:
            starts.append(time.seconds)
        else:
            seconds_of[time.fed].append(time.seconds)
    often = {fed: s for fed, s in seconds_of.items() if len(s) >= LEAST_PASSES}
    points = [(fed, median(s)) for fed, s in sorted((often or seconds_of).items())]
    return Curve(tuple(points), median(starts) if starts else None)


def _stretched(curve: Curve, times: Iterable[PassTime]) -> Curve:
    """``curve`` by the factor by which ``times`` are longer, in the median."""
    factors = [time.seconds / curve(time.fed) for time in times if not time.starts]
    factor = max(1.0, median(factors)) if factors else 1.0
    points = [(fed, factor * seconds) for fed, seconds in curve.forward]
    prefill = None if curve.prefill is None else factor * curve.prefill
    return Curve(tuple(points), prefill)
