"""A method's real code over a grid of drafter latencies and acceptance rates; what a grid gave.

For heatmaps: one row of cells is one drafter latency. A row is kept on disk when it is done, and
rows are computed on every core. Knows no paper and no picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from speclib.data.latency import Latency
from speclib.experiment.cells.measured import agreements
from speclib.methods import METHODS
from speclib.models.toy import BOS
from speclib.trace.metrics import stats

from . import cache
from .cells import virtual as virtual_cells
from .pool import on_every_core


class Row(NamedTuple):
    """What is asked of one row: ``requests`` of ``tokens`` for each of ``alphas``, a draft pass at
    ``share`` of a target pass, ``settings`` to the method (servers: as many targets too)."""

    method: str
    share: float
    alphas: tuple[float, ...]
    settings: tuple[tuple[str, int], ...]
    tokens: int
    requests: int


def mean_times(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    """(rows, alphas) each, in target passes: the mean time of a request, and what Proposition 1 of
    the DSI paper charges for the very drafts that came: the drafter's time for each right one but
    the last token, the target's for each other token."""
    missing = [row for row in rows if not cache.exists(_key(row))]
    done = dict(on_every_core(compute, missing)) if missing else {}
    found = [done.get(row) or compute(row)[1] for row in rows]
    return tuple(np.array([each[which] for each in found]) for which in (0, 1))


def compute(row: Row) -> tuple[Row, list[list[float]]]:
    """One row and its two lists of times, from the cache or run."""
    return row, kept(
        _key(row),
        lambda: [
            [float(v) for v in column]
            for column in zip(
                *(
                    np.mean([_one(row, alpha, i) for i in range(row.requests)], 0)
                    for alpha in row.alphas
                ),
                strict=True,
            )
        ],
    )


def _one(row: Row, alpha: float, request: int) -> tuple[float, float]:
    settings, latency = dict(row.settings), Latency.ratio(1 / row.share)
    world = virtual_cells.world(
        latency,
        alpha,
        tokens=row.tokens,
        request=request,
        servers=settings.get("servers", 1),
    )
    trace = virtual_cells.decode(
        world,
        METHODS[row.method],
        alpha,
        tokens=row.tokens,
        request=request,
        **settings,
    )
    right = sum(agreements(world, (BOS,), world.text[1:])[:-1])
    return stats(trace).seconds, row.tokens - right * (1 - row.share)


def kept(key: str, compute: Callable[[], list]) -> list:
    """What ``compute`` gives (numbers, lists), done once per ``key``."""
    held = cache.load(key)
    if held is None:
        cache.save(key, {}, [{"values": compute()}])
        held = cache.load(key)
    return held[1][0]["values"]


def _key(row: Row) -> str:
    return cache.digest(
        row,
        cache.code_of(
            METHODS[row.method], "speclib.experiment.latency_acceptance_grid"
        ),
    )
