"""The same what-if drawn many times over: how far one draw can be from another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from statistics import fmean
from typing import Any, NamedTuple

DRAWS = 60
CANDIDATES = 20  # draws among which a typical one is found


class SpeedRange(NamedTuple):
    """The speed-ups of many draws: their lowest, mean and highest."""

    lowest: float
    mean: float
    highest: float

    def __str__(self) -> str:
        return f"{self.lowest:.2f} to {self.highest:.2f}×, mean {self.mean:.2f}×"


def takes_seed(simulate: Callable[..., Any] | Mapping[Any, Any]) -> bool:
    """Whether what is simulated depends on an argument ``seed``."""
    return callable(simulate) and "seed" in signature(simulate).parameters


def draw_many(
    speedups_of_seed: Callable[[int], list[float]], draws: int = DRAWS
) -> Iterator[list[SpeedRange]]:
    """The ranges of each run's speed-up over so many seeds.

    ``speedups_of_seed(seed)`` gives one speed-up per run. The ranges so far are given
    after each seed, so that somebody who waits for an event loop can let others go
    first.
    """
    speedups: list[list[float]] = []
    for seed in range(draws):
        speedups.append(speedups_of_seed(seed))
        yield [
            SpeedRange(min(of_run), fmean(of_run), max(of_run))
            for of_run in zip(*speedups, strict=True)
        ]


def most_typical(distance_of_seed: Callable[[int], float]) -> int:
    """The seed, of a few, whose draw is nearest to what is expected."""
    return min(range(CANDIDATES), key=distance_of_seed)
