"""What the virtual clock makes of a measured run, at the speeds of this machine."""

from __future__ import annotations

from statistics import median

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.decoding.replay import replay
from speclib.operations.score import Score
from speclib.trace.metrics import stats, total
from speclib.worlds.world import World

from .races import Race

FED = (1, 2, 4, 6, 8, 10, 16)  # tokens of a pass: the points of a curve
TEXT = (1,) * 96
ROLES = ("draft", "target")


def predicted_speed(finished_race: Race, name: str, latency: Latency) -> float:
    """A contestant's tokens per second, its runs replayed on the virtual clock."""
    replayed = []
    for answer in finished_race.answers(name):
        replayed.append(stats(replay(answer.trace, latency=latency)))
    return total(replayed).decode_speed


def busy_latency(world: World, passes: int) -> Latency:
    """Seconds of a pass by tokens fed, while the other device is busy, too.

    They are medians of at least ``passes`` passes.
    """
    points: dict[str, list[tuple[int, float]]] = {role: [] for role in ROLES}
    for fed in FED:
        for role, seconds in _seconds_of_passes(world, passes, fed).items():
            points[role].append((fed, median(seconds)))
    draft, target = (Curve(tuple(points[role])) for role in ROLES)
    return Latency(draft, target, "both busy")


def _seconds_of_passes(world: World, passes: int, fed: int) -> dict[str, list[float]]:
    """Seconds of each device's passes that feed ``fed`` tokens.

    Each device always has something to do until the slower one has done its ``passes``:

        draft    |--|--|--|--|--|--|--|--|--
        target   |-------|-------|-------|--
                                         the slower is done; what runs does not count
    """
    world.begin(TEXT, sampler=Sampler(), coins=Coins(), limit=1)
    world.all(*(world.devices[role].score(TEXT) for role in ROLES))  # fills the caches

    operation = Score(TEXT, fed - 1)
    running = {role: world.submit(role, operation) for role in ROLES}
    done = dict.fromkeys(ROLES, 0)
    while min(done.values()) < passes:
        ended = world.first(*running.values())
        world.wait(ended)  # raises if its device was lost
        role = ended.device
        done[role] += 1
        running[role] = world.submit(role, operation)

    events = world.end().operations
    counted = events[len(ROLES) : -len(ROLES)]  # less the prefills, and what still runs
    seconds = {}
    for role in ROLES:
        seconds[role] = [event.dur for event in counted if event.device == role]
    return seconds
