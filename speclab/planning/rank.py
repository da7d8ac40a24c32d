"""Candidates by the virtual clock: their own code, the models' own tokens, and the
seconds of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from speclab.experiment.cells.replayed_prompt import Replay
from speclab.experiment.cells.timed_passes import MachineTimes
from speclab.progress import Progress
from speclib.data.pairs import Pair
from speclib.decoding.decode import Result, decode
from speclib.models.open_pair import open_pair
from speclib.models.remembering import Memories
from speclib.trace.metrics import total
from speclib.worlds.world import World

from .batch_limit import batch_limit
from .candidates import PLAIN, Candidate


class Ranked(NamedTuple):
    """What the virtual clock says of each candidate, the fastest first.

    speedups  over plain decoding, after the first commit
    limits    at how many requests at a time plain decoding would be as fast
    """

    speedups: dict[Candidate, float]
    limits: dict[Candidate, float]


def rank(
    pair: Pair,
    candidates: Sequence[Candidate],
    prompts: Sequence[Any],
    max_new_tokens: int,
    times: MachineTimes,
    *,
    servers: int,
    cancel: str,
) -> Ranked:
    """Runs each candidate on the virtual clock.

    ``cancel``: when work ends that nobody wants any more, as where it is measured. A
    candidate whose devices ever work at once goes by the times of passes beside others.
    """
    replay = Replay(open_pair(pair), times, Memories(), servers=servers, cancel=cancel)
    speeds, limits = {}, {}
    with Progress("virtual", total=len(candidates)) as bar:
        for candidate in candidates:
            runs = [
                _replayed(replay, candidate, prompt, max_new_tokens)
                for prompt in prompts
            ]
            speeds[candidate] = total(run.stats for run in runs).decode_speed
            traces = [run.trace for run in runs]
            limits[candidate] = batch_limit(traces, times.alone.passes.target)
            bar.step(candidate.name)

    ranked = sorted(speeds, key=speeds.__getitem__, reverse=True)
    speedups = {candidate: speeds[candidate] / speeds[PLAIN] for candidate in ranked}
    return Ranked(speedups, limits)


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


def _replayed(
    replay: Replay, candidate: Candidate, prompt: Any, max_new_tokens: int
) -> Result:
    """A candidate's run on the virtual clock."""

    def run(world: World) -> Result:
        return run_candidate(world, candidate, prompt, max_new_tokens)

    return replay.by_own_times(run, candidate)


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
