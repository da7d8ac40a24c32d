"""Candidates with several requests at a time: in lock-step, on both clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from speclab.experiment import other_load
from speclab.experiment.cells.replayed_prompt import pair_to_replay, works_at_once
from speclab.experiment.cells.timed_passes import MachineTimes, TimedPasses
from speclab.progress import Progress
from speclib.data.latency import Curve, Latency
from speclib.data.pairs import Pair
from speclib.decoding.batch import in_lockstep
from speclib.decoding.decode import BatchResult, Result
from speclib.models.open_pair import open_pair
from speclib.models.remembering import Memories
from speclib.worlds.devices import device_names
from speclib.worlds.lockstep import Lockstep, Seat, VirtualLockstep
from speclib.worlds.lockstep_processes import ProcessLockstep

from .batch_limit import batch_limit, going_on
from .candidates import PLAIN, Candidate
from .measure_plans import Measured, measured_of
from .rank import Ranked, run_candidate


def rank_in_batch(
    pair: Pair,
    candidates: Sequence[Candidate],
    prompts: Sequence[Any],
    max_new_tokens: int,
    times: MachineTimes,
    batch: int,
) -> Ranked:
    """As ``rank``, with ``batch`` requests at a time; speeds are throughputs.

    Passes over more tokens than were timed go on in a straight line.
    """
    opened = open_pair(pair_to_replay(pair))
    memories = Memories()
    target = times.alone.passes.target

    def run(candidate: Candidate, passes: TimedPasses) -> BatchResult:
        steps = VirtualLockstep(batch, latency_of(passes), opened)

        def decode_one(seat: Seat, number: int) -> Result:
            steps.give_models(seat, memories.models(opened, device_names()))
            return run_candidate(seat, candidate, prompts[number], max_new_tokens)

        return in_lockstep(steps, len(prompts), decode_one)

    speeds, limits = {}, {}
    with Progress("virtual", total=len(candidates)) as bar:
        for candidate in candidates:
            result = run(candidate, times.alone)
            traces = [each.trace for each in result.results]
            if any(works_at_once(trace) for trace in traces):
                result = run(candidate, times.together)
            speeds[candidate] = result.throughput
            limits[candidate] = batch_limit(traces, target)
            bar.step(candidate.name)

    ranked = sorted(speeds, key=speeds.__getitem__, reverse=True)
    return Ranked({each: speeds[each] / speeds[PLAIN] for each in ranked}, limits)


def latency_of(timed: TimedPasses) -> Latency:
    """Timed passes, with the message beside each operation in its own time."""

    def with_message(curve: Curve) -> Curve:
        return replace(going_on(curve), once=timed.message)

    return replace(
        timed.passes,
        draft=with_message(timed.passes.draft),
        target=with_message(timed.passes.target),
    )


def measure_in_batch(
    pair: Pair,
    candidates: Sequence[Candidate],
    prompts: Sequence[Any],
    max_new_tokens: int,
    batch: int,
) -> Measured:
    """Each candidate on all prompts, ``batch`` at a time, after plain decoding.

    The speeds are those of a request beside the others.
    """
    contestants = [PLAIN, *(one for one in candidates if one != PLAIN)]
    stats = {}
    most_from_others = 0.0
    with (
        ProcessLockstep(pair, batch) as steps,
        Progress("measured", total=len(contestants)) as bar,
    ):
        for candidate in contestants:
            start = other_load.read_clocks()
            result = _run(steps, candidate, prompts, max_new_tokens)
            others = other_load.others_since(start)
            most_from_others = max(most_from_others, others)
            stats[candidate] = [each.stats for each in result.results]
            bar.step(candidate.name)
    return measured_of(stats, most_from_others)


def _run(
    steps: Lockstep, candidate: Candidate, prompts: Sequence[Any], max_new_tokens: int
) -> BatchResult:
    def decode_one(seat: Seat, number: int) -> Result:
        return run_candidate(seat, candidate, prompts[number], max_new_tokens)

    return in_lockstep(steps, len(prompts), decode_one)
