"""Candidates by the virtual clock: their own code, the models' own tokens, and the
seconds of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from speclab.progress import Progress
from speclib.data.pairs import Pair
from speclib.decoding.decode import Result, decode, open_world
from speclib.models.remembering import remembering
from speclib.trace.events import Trace
from speclib.trace.metrics import total
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

from .candidates import PLAIN, Candidate
from .timed_passes import MachineTimes

TOUCHING = 1e-9  # seconds: an operation begins where another one ends


def rank(
    pair: Pair,
    candidates: Sequence[Candidate],
    prompts: Sequence[Any],
    max_new_tokens: int,
    times: MachineTimes,
    *,
    servers: int,
    cancel: str,
) -> dict[Candidate, float]:
    """Speed-ups over plain decoding, after the first commit, the fastest first.

    ``cancel``: when work ends that nobody wants any more, as where it is measured. A
    candidate whose devices ever work at once goes by the times of passes beside others.
    """
    speeds = {}
    with (
        open_world(
            "virtual", pair, latency=times.alone, servers=servers, cancel=cancel
        ) as world,
        Progress("virtual", total=len(candidates)) as bar,
    ):
        assert isinstance(world, Virtual)
        if not pair.target.is_toy:  # candidates write the same texts
            world.models = remembering(world.models)
        for candidate in candidates:
            runs = _runs_by_own_times(world, candidate, prompts, max_new_tokens, times)
            speeds[candidate] = total(run.stats for run in runs).decode_speed
            bar.step(candidate.name)

    ranked = sorted(speeds, key=speeds.__getitem__, reverse=True)
    return {candidate: speeds[candidate] / speeds[PLAIN] for candidate in ranked}


def works_at_once(trace: Trace) -> bool:
    """Whether two devices ever worked at the same time."""
    events = sorted(trace.operations, key=lambda event: event.ts)
    for before, after in pairwise(events):
        if after.device != before.device and after.ts < before.end - TOUCHING:
            return True
    return False


def best_of_each_method(ranked: Iterable[Candidate]) -> list[Candidate]:
    """The first candidate, in their order, of each method but plain decoding.

    Settings of one method that lie beside each other hardly differ: measuring three of
    them would answer one question.
    """
    first: dict[str, Candidate] = {}
    for candidate in ranked:
        first.setdefault(candidate.method, candidate)
    first.pop(PLAIN.method, None)
    return list(first.values())


def _runs_by_own_times(
    world: Virtual,
    candidate: Candidate,
    prompts: Sequence[Any],
    max_new_tokens: int,
    times: MachineTimes,
) -> list[Result]:
    """A candidate's runs, by the times of passes alone or beside others.

    One run in which devices work at once is enough to know that the others count.
    """
    world.latency = times.alone
    runs = []
    for prompt in prompts:
        runs.append(run_candidate(world, candidate, prompt, max_new_tokens))
        if works_at_once(runs[-1].trace):
            world.latency = times.together
            return [
                run_candidate(world, candidate, each, max_new_tokens)
                for each in prompts
            ]
    return runs


def run_candidate(
    world: World, candidate: Candidate, prompt: Any, max_new_tokens: int
) -> Result:
    """One prompt, decoded by a candidate in an open world."""
    settings: dict[str, Any] = dict(candidate.settings)
    return decode(
        prompt,
        world=world,
        method=candidate.method,
        max_new_tokens=max_new_tokens,
        **settings,
    )
