"""The seconds of a pair's passes on a machine, known once and then from the cache.

They are read from the first runs that are measured there. Where they are wanted before
anything was measured, as for a search on replays, a few requests are timed for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speclab.experiment import cache, cache_keys, other_load
from speclab.experiment.cells.replayed_prompt import works_at_once
from speclab.experiment.cells.timed_passes import MachineTimes, time_passes, times_of
from speclab.experiment.environments import Environment
from speclab.experiment.spec import WorkerPool
from speclib import machine
from speclib.data import prompts
from speclib.models.open_pair import open_pair
from speclib.models.zoo import CHECKSUMS
from speclib.paths import DATA
from speclib.trace.events import Trace
from speclib.worlds.world import World

from .measured_pair import pair_to_measure

CODE = ("speclab.experiment.cells.timed_passes", "speclib.worlds.processes")
TASK = "humaneval"  # its first prompt is decoded,
TOKENS = 24  # so many tokens of an answer by each method
MOST_TRIES = 2  # while other programs keep the machine busy


@dataclass(frozen=True)
class TimedHeader:
    """What is stored. ``others``: the share of the machine that others took then."""

    times: MachineTimes
    others: float


def stored(
    pool: WorkerPool, environment: Environment | None = None
) -> MachineTimes | None:
    """What the cache has; None where nothing is known of these workers yet.

    ``environment``: of the machine that timed them; None: this one's.
    """
    found = cache.load(key_of(pool, environment), TimedHeader, TimedHeader)
    return None if found is None else found.header.times


def timed(pool: WorkerPool, world: World) -> MachineTimes:
    """What a few requests show in ``world``; once more if others were busy."""
    tries = []
    for _ in range(MOST_TRIES):
        tries.append(_time(world))
        if not other_load.is_disturbed(tries[-1].others):
            break
    return _keep(pool, min(tries, key=lambda header: header.others))


def read_from(
    pool: WorkerPool, traces: Sequence[Trace], others: float, ratio: float
) -> MachineTimes:
    """What measured runs show, plain decoding among them; see ``times_of``."""
    in_turns = [trace for trace in traces if not works_at_once(trace)]
    at_once = [trace for trace in traces if works_at_once(trace)]
    return _keep(pool, TimedHeader(times_of(in_turns, at_once, ratio), others))


def _keep(pool: WorkerPool, header: TimedHeader) -> MachineTimes:
    cache.save(key_of(pool), header, [])
    return header.times


def _time(world: World) -> TimedHeader:
    prompt = prompts.load(TASK, 1)[0]
    start = other_load.read_clocks()
    times = time_passes(world, [prompt.input], TOKENS)
    return TimedHeader(times, other_load.others_since(start))


def key_of(pool: WorkerPool, environment: Environment | None = None) -> str:
    """The name under which the times of these workers are stored."""
    pair = pair_to_measure(pool.pair, pool.dtype, environment)
    return cache_keys.digest(
        "times",
        pool,
        pair.draft.shape,
        open_pair(pair).runtime("draft"),
        cache_keys.hash_of_code(CODE),
        cache_keys.hash_of_files(DATA / "pairs" / f"{pool.pair}.toml", CHECKSUMS),
        machine.environment() if environment is None else environment,
    )
