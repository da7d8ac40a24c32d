"""What devices that share a machine cost each other: durations alone, and both busy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from statistics import median
from typing import NamedTuple

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.data.pairs import load_pair
from speclib.operations.score import Score
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .bench_rows import BenchRow, Size

PAIR = "embedded/llama-7b-70b"  # the stand-in whose cost ratio c is about 5
FED = (1, 2, 4, 6, 8, 10, 16)  # tokens of a pass: the points of a curve
TEXT = (1,) * 96
ROLES = ("draft", "target")


class Contention(NamedTuple):
    """What two targets at once cost.

    ``e``: time of a pass alone over that of two at once; 1 is no contention.
    ``alone``: seconds of a pass alone.
    """

    e: float
    alone: float


class Latencies(NamedTuple):
    """Seconds of a pass by tokens fed: each device alone, and while both are busy."""

    alone: Latency
    busy: Latency


def two_targets(size: Size) -> Iterator[BenchRow]:
    """One pass of the target alone, over one on each of the pair's cores at once.

    There are two copies of the target. A pass feeds one token; two at once last until
    both are done; alone and at once take turns.
    """
    e, alone = measure_contention(PAIR, size)
    yield BenchRow(
        f"e: one target forward alone over two at once, {PAIR}",
        e,
        "ratio",
        note=f"1 is no contention; alone {1000 * alone:.3g} ms, two at once "
        f"{1000 * alone / e:.3g} ms, medians of {size.repeats * size.passes}",
    )


@cache  # the speed-ups are judged by the same e that is shown
def measure_contention(pair_name: str, size: Size) -> Contention:
    """Medians over repeats x passes."""
    pair = load_pair(pair_name)
    two_targets_pair = pair.model_copy(update={"draft": pair.target})
    with Processes(two_targets_pair) as world:
        _begin(world)
        for _ in range(size.repeats * size.passes):
            world.wait(world.target.score(TEXT))
            world.all(*(world.devices[role].score(TEXT) for role in ROLES))
        events = sorted(world.end().operations, key=lambda event: event.id)

    # After the two that fill the caches: one alone, two at once, one alone, ...
    seconds = [event.dur for event in events[len(ROLES) :]]
    alone, at_once = [], []
    for first in range(0, len(seconds), 3):
        alone.append(seconds[first])
        at_once.append(max(seconds[first + 1], seconds[first + 2]))
    return Contention(e=median(alone) / median(at_once), alone=median(alone))


def measure_latencies(world: World, size: Size) -> Latencies:
    """Medians over ``size.passes``."""
    each_alone = [(role,) for role in ROLES]
    return Latencies(
        alone=_measure_latency(world, size.passes, each_alone, "alone"),
        busy=_measure_latency(world, size.passes, [ROLES], "both busy"),
    )


def _measure_latency(
    world: World, passes: int, groups: Sequence[tuple[str, ...]], name: str
) -> Latency:
    """Medians of ``passes`` passes, the devices of each group working at once."""
    points: dict[str, list[tuple[int, float]]] = {role: [] for role in ROLES}
    for fed in FED:
        for group in groups:
            seconds = _seconds_of_passes(world, passes, group, fed)
            for role in group:
                points[role].append((fed, median(seconds[role])))
    draft, target = (Curve(tuple(points[role])) for role in ROLES)
    return Latency(draft, target, name)


def _seconds_of_passes(
    world: World, passes: int, roles: tuple[str, ...], fed: int
) -> dict[str, list[float]]:
    """Seconds of each device's passes that feed ``fed`` tokens.

    Each has always something to do until the slowest has done its ``passes``:

        draft    |--|--|--|--|--|--|--|--|--
        target   |-------|-------|-------|--
                                         the slowest is done; what runs does not count
    """
    _begin(world)
    operation = Score(TEXT, fed - 1)
    running = {role: world.submit(role, operation) for role in roles}
    done = dict.fromkeys(roles, 0)
    while min(done.values()) < passes:
        ended = world.first(*running.values())
        world.wait(ended)  # raises where its device was lost
        role = ended.device
        done[role] += 1
        running[role] = world.submit(role, operation)

    events = world.end().operations
    counted = events[len(ROLES) : -len(roles)]  # less the prefills, and what still runs
    seconds = {}
    for role in roles:
        seconds[role] = [event.dur for event in counted if event.device == role]
    return seconds


def _begin(world: World) -> None:
    """Begin a request whose text both devices hold in their caches."""
    world.begin(TEXT, sampler=Sampler(), coins=Coins(), limit=1)
    world.all(*(world.devices[role].score(TEXT) for role in ROLES))
