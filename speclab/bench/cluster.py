"""What a message costs in a cluster, beside the same message on one machine.

    python -m speclab.bench.cluster

A cluster must be running (``ray start --head``). The models are toys, which take hardly
any time; what is shown is an operation's time for the controller less that which its
device worked. Both worlds take turns.

Rows are greedy, or sampled, and of these none is read as a whole, or one is, as
after a rejection.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles
from typing import NamedTuple

import numpy as np

from speclib.core.sampling import Coins, Sampler
from speclib.data.pairs import ModelSpec, Pair
from speclib.errors import naming_extras
from speclib.models.toy import BOS
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

VOCABULARIES = (1_000, 32_000, 152_000)
GAMMA = 5
TURNS = 5
MESSAGES = 60  # a turn
WARM_UP = 10
KINDS_OF_ROWS = (
    ("greedy", 0.0, 0),
    ("sampled", 1.0, 0),
    ("sampled, one whole", 1.0, 1),
)


class Cost(NamedTuple):
    """Milliseconds of both messages of a target pass with GAMMA drafts.

    ``low``, ``high``: a tenth took less, a tenth more.
    """

    world: str
    vocab: int
    rows: str
    milliseconds: float
    low: float
    high: float


def measure() -> Iterator[Cost]:
    """The costs for every vocabulary and all kinds of rows, in both worlds."""
    with naming_extras("speclab.bench.cluster"):
        from speclib.worlds.cluster.cluster_world import Cluster

    for vocab in VOCABULARIES:
        target = ModelSpec(model="toy", vocab=vocab)
        draft = ModelSpec(model="toy", vocab=vocab, alpha=0.9)
        pair = Pair(target=target, draft=draft, name=f"toys of {vocab:,}")
        with Processes(pair) as here, Cluster(pair) as there:
            worlds: dict[str, World] = {"processes": here, "cluster": there}
            for rows, temperature, whole in KINDS_OF_ROWS:
                times: dict[str, list[float]] = {name: [] for name in worlds}
                for _ in range(TURNS):
                    for name, world in worlds.items():
                        times[name] += message_times(world, temperature, whole)
                for name, of_world in times.items():
                    tenths = quantiles(of_world, n=10)
                    yield Cost(
                        name, vocab, rows, median(of_world), tenths[0], tenths[-1]
                    )


def message_times(world: World, temperature: float, whole: int) -> list[float]:
    """Milliseconds that the messages of each of MESSAGES target passes took.

    ``whole``: so many of its rows are read in whole.
    """
    limit = 2 * (WARM_UP + MESSAGES)
    world.begin((BOS,), sampler=Sampler(temperature), coins=Coins(), limit=limit)
    fetch_times = []
    for _ in range(WARM_UP + MESSAGES):
        rows = world.wait(world.target.score(world.text + (1,) * GAMMA, GAMMA))
        answered = world.now
        for row in rows[:whole]:
            np.asarray(row)
        fetch_times.append(world.now - answered)
        world.commit((1, 2))

    seconds = []
    events = world.end().operations
    for event, fetch_time in zip(events, fetch_times, strict=True):
        seconds.append(event.message_seconds + fetch_time)
    return [1000 * taken for taken in seconds[WARM_UP:]]


def main() -> None:
    """Prints a table."""
    print("| vocabulary | rows | world | ms of both messages | a tenth below, above |")
    print("| ---: | --- | --- | ---: | --- |")
    for cost in measure():
        print(
            f"| {cost.vocab:,} | {cost.rows} | {cost.world} | "
            f"{cost.milliseconds:.2f} | {cost.low:.2f}, {cost.high:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
