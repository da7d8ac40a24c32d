"""Candidates by the clock on the wall, in turns with plain decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from speclab.experiment import other_load
from speclab.papers.bootstrap import Resamples, draw_resamples
from speclab.papers.estimates import Estimate
from speclab.progress import Progress
from speclib.errors import BadValue
from speclib.trace.metrics import Stats, total
from speclib.worlds.world import World

from .candidates import PLAIN, Candidate
from .rank import run_candidate

TRIES = 2  # of a request beside which other programs kept the machine busy


@dataclass(frozen=True)
class Measured:
    """What candidates did, plain decoding among them.

    speeds      tokens per second after the first commit, by candidate
    end_to_end  the same from the request on
    prompts     how many they rest on
    others      the largest share of the machine that other programs took meanwhile
    """

    speeds: dict[Candidate, Estimate]
    end_to_end: dict[Candidate, Estimate]
    prompts: int
    others: float


def measure(
    world: World,
    candidates: Sequence[Candidate],
    prompts: Sequence[Any],
    max_new_tokens: int,
) -> Measured:
    """Each candidate on each prompt; who begins changes from prompt to prompt.

    Prompts that some candidate answered in its first commit are left out, since they
    have no time after it. Raises BadValue where no prompt is left.
    """
    contestants = [PLAIN, *(one for one in candidates if one != PLAIN)]
    turns = []
    with Progress("measured", total=len(prompts) * len(contestants)) as bar:
        for number, prompt in enumerate(prompts):
            first = number % len(contestants)
            in_order = contestants[first:] + contestants[:first]
            turns.append(_take_turns(world, in_order, prompt, max_new_tokens, bar))

    usable = [turn for turn in turns if turn.has_time_after_the_first_commit]
    if not usable:
        raise BadValue(
            f"every answer was complete with its first commit: give max_new_tokens of "
            f"more than {max_new_tokens}, or other prompts"
        )
    stats = {one: [turn.stats[one] for turn in usable] for one in contestants}
    return measured_of(stats, max(turn.others for turn in turns))


def measured_of(stats: Mapping[Candidate, Sequence[Stats]], others: float) -> Measured:
    """Speeds with their intervals, of each candidate's stats prompt by prompt."""
    speeds, end_to_end = {}, {}
    for candidate, of_prompts in stats.items():
        speeds[candidate] = _speed(of_prompts, from_first_commit=True)
        end_to_end[candidate] = _speed(of_prompts, from_first_commit=False)
    return Measured(speeds, end_to_end, len(of_prompts), others)


@dataclass(frozen=True)
class Turn:
    """What became of one prompt, by candidate.

    ``others``: the largest share of the machine that other programs took meanwhile.
    """

    stats: dict[Candidate, Stats]
    others: float

    @property
    def has_time_after_the_first_commit(self) -> bool:
        """Whether each candidate wrote more than its first commit."""
        return all(s.tokens > s.first_tokens for s in self.stats.values())


def _take_turns(
    world: World,
    candidates: Sequence[Candidate],
    prompt: Any,
    max_new_tokens: int,
    bar: Progress,
) -> Turn:
    """All candidates on one prompt, in this order."""
    stats, most_from_others = {}, 0.0
    for candidate in candidates:
        own_stats, others = _watched_run(world, candidate, prompt, max_new_tokens)
        stats[candidate] = own_stats
        most_from_others = max(most_from_others, others)
        bar.step(candidate.name)
    return Turn(stats, most_from_others)


def _watched_run(
    world: World, candidate: Candidate, prompt: Any, max_new_tokens: int
) -> tuple[Stats, float]:
    """A run, and what others took of the machine; once more if that is much."""
    tries = []
    for _ in range(TRIES):
        start = other_load.read_clocks()
        stats = run_candidate(world, candidate, prompt, max_new_tokens).stats
        others = other_load.others_since(start)
        tries.append((stats, others))
        if not other_load.is_disturbed(others):
            break
    return min(tries, key=lambda attempt: attempt[1])


def _speed(stats: Sequence[Stats], *, from_first_commit: bool) -> Estimate:
    """Tokens per second of all prompts together, and in resamples of the prompts."""
    tokens = np.array([s.tokens for s in stats], float)
    seconds = np.array([s.seconds for s in stats])
    sums = total(stats)
    value = sums.decode_speed_e2e
    if from_first_commit:
        tokens -= [s.first_tokens for s in stats]
        seconds -= [s.ttft for s in stats]
        value = sums.decode_speed
    times = draw_resamples(len(stats))
    return Estimate(value, Resamples((times @ tokens) / (times @ seconds), len(stats)))
