"""What a message costs in a cluster, beside the same message on one machine.

    python -m speclib.bench.cluster

A cluster must be running (``ray start --head``). The models are toys, which take hardly
any time; what is shown is an operation's time for the controller less that which its
device worked. Both worlds take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles
from typing import NamedTuple

from speclib.core.sampling import Coins, Sampler
from speclib.data.pairs import ModelSpec, Pair
from speclib.models.toy import BOS
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

VOCABULARIES = (1_000, 32_000, 152_000)
GAMMA = 5
TURNS = 5
MESSAGES = 60  # a turn
WARM_UP = 10


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
    """Of every vocabulary, of greedy rows and sampled ones, in both worlds."""
    from speclib.worlds.cluster.world import Cluster

    for vocab in VOCABULARIES:
        target = ModelSpec(model="toy", vocab=vocab)
        draft = ModelSpec(model="toy", vocab=vocab, alpha=0.9)
        pair = Pair(target=target, draft=draft, name=f"toys of {vocab:,}")
        with Processes(pair) as here, Cluster(pair) as there:
            worlds: dict[str, World] = {"processes": here, "cluster": there}
            for rows, temperature in (("greedy", 0.0), ("sampled", 1.0)):
                times: dict[str, list[float]] = {name: [] for name in worlds}
                for _ in range(TURNS):
                    for name, world in worlds.items():
                        times[name] += message_times(world, temperature)
                for name, of_world in times.items():
                    tenths = quantiles(of_world, n=10)
                    yield Cost(
                        name, vocab, rows, median(of_world), tenths[0], tenths[-1]
                    )


def message_times(world: World, temperature: float) -> list[float]:
    """Milliseconds that the messages of each of MESSAGES target passes took."""
    limit = 2 * (WARM_UP + MESSAGES)
    world.begin((BOS,), sampler=Sampler(temperature), coins=Coins(), limit=limit)
    for _ in range(WARM_UP + MESSAGES):
        world.wait(world.target.score(world.text + (1,) * GAMMA, GAMMA))
        world.commit((1, 2))
    events = world.end().operations[WARM_UP:]
    return [1000 * event.message_seconds for event in events]


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
