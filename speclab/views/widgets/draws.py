"""Repeats a simulation with many seeds, to show how much its draws differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from statistics import fmean
from typing import Any, NamedTuple

DRAWS = 60
CANDIDATES = 20  # draws to choose a typical one from


class SpeedRange(NamedTuple):
    """The lowest, mean and highest speed-up of many draws."""

    lowest: float
    mean: float
    highest: float

    def __str__(self) -> str:
        return f"{self.lowest:.2f} to {self.highest:.2f}×, mean {self.mean:.2f}×"


def takes_seed(simulate: Callable[..., Any] | Mapping[Any, Any]) -> bool:
    """Whether the simulation has an argument ``seed``."""
    return callable(simulate) and "seed" in signature(simulate).parameters


def draw_many(
    speedups_of_seed: Callable[[int], list[float]], draws: int = DRAWS
) -> Iterator[list[SpeedRange]]:
    """The range of each run's speed-up over ``draws`` seeds.

    ``speedups_of_seed(seed)`` returns one speed-up per run. Yields the ranges so far
    after each seed, so that the caller can return control to an event loop.
    """
    speedups: list[list[float]] = []
    for seed in range(draws):
        speedups.append(speedups_of_seed(seed))
        yield [
            SpeedRange(min(of_run), fmean(of_run), max(of_run))
            for of_run in zip(*speedups, strict=True)
        ]


def most_typical(distance_of_seed: Callable[[int], float]) -> int:
    """The seed, out of ``CANDIDATES``, whose draw is nearest to the expected one."""
    return min(range(CANDIDATES), key=distance_of_seed)
