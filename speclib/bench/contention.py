"""What devices that share a machine cost each other: durations alone, and while both are busy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from statistics import median

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.data.pairs import load_pair
from speclib.operations.score import Score
from speclib.worlds.processes import Processes

from .rows import Row, Size

PAIR = "embedded/llama-7b-70b"  # the stand-in whose cost ratio c is about 5
FED = (1, 2, 4, 6, 8, 10, 16)  # tokens of a pass: the points of a curve
TEXT = (1,) * 96
ROLES = ("draft", "target")


def two_targets(size: Size) -> Iterator[Row]:
    """Two copies of the target, one on each of the pair's cores: the time of one forward pass of
    one token alone, over that of one on each at once, until both are done; they take turns."""
    e, alone = contention(PAIR, size)
    yield Row(
        f"e: one target forward alone over two at once, {PAIR}",
        e,
        "ratio",
        note=f"1 is no contention; alone {1000 * alone:.3g} ms, two at once "
        f"{1000 * alone / e:.3g} ms, medians of {size.repeats * size.passes}",
    )


@cache  # speed-ups are judged by the same e as it is shown
def contention(name: str, size: Size) -> tuple[float, float]:
    """(e, seconds of a pass alone): medians over repeats x passes."""
    pair = load_pair(name)
    alone, both = [], []
    with Processes(pair.model_copy(update={"draft": pair.target})) as world:
        _begin(world)
        for _ in range(size.repeats * size.passes):
            world.wait(world.target.score(TEXT))
            world.all(*(world.devices[role].score(TEXT) for role in ROLES))
        events = sorted(world.end().operations, key=lambda e: e.id)[len(ROLES) :]
    for i in range(0, len(events), 3):
        alone.append(events[i].dur)
        both.append(max(events[i + 1].dur, events[i + 2].dur))
    return median(alone) / median(both), median(alone)


def latencies(world, size: Size) -> tuple[Latency, Latency]:
    """Seconds of a pass by tokens fed: (each device alone, both busy), medians of passes."""
    alone = _latency(world, size.passes, [(role,) for role in ROLES], "alone")
    return alone, _latency(world, size.passes, [ROLES], "both busy")


def _latency(world, passes: int, groups: list[tuple[str, ...]], name: str) -> Latency:
    """Passes of the devices of each group at once: every one of them has always something to do
    until the slowest has done its ``passes``."""
    points: dict[str, list] = {role: [] for role in ROLES}
    for fed in FED:
        for group in groups:
            _begin(world)
            asked = {role: world.submit(role, Score(TEXT, fed - 1)) for role in group}
            done = dict.fromkeys(group, 0)
            while min(done.values()) < passes:
                role = world.first(*asked.values()).device
                done[role] += 1
                asked[role] = world.submit(role, Score(TEXT, fed - 1))
            events = world.end().operations[
                len(ROLES) : -len(group)
            ]  # less prefill, and the last
            for role in group:
                times = [e.dur for e in events if e.device == role]
                points[role].append((fed, median(times)))
    return Latency(*(Curve(tuple(points[role])) for role in ROLES), name)


def _begin(world) -> None:
    """A request whose text both devices hold."""
    world.begin(TEXT, sampler=Sampler(), coins=Coins(), limit=1)
    world.all(*(world.devices[role].score(TEXT) for role in ROLES))
