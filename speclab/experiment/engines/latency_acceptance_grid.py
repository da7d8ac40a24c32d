"""A method's real code over a grid of drafter latencies and acceptance rates.

For heatmaps: one row is one drafter latency. A row is stored when it is done, and
rows are computed on every core. Knows no paper and no picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from speclab.experiment import cache, cache_keys
from speclab.experiment.cells.grid_row import GridRow, compute_row
from speclib.methods import METHODS

CODE = ("speclab.experiment.cells.grid_row",)


class GridTimes(NamedTuple):
    """Mean times of a request in target passes, two arrays of shape (rows, alphas).

    ``method`` and ``formula`` as in ``grid_row.RequestTimes``.
    """

    method: np.ndarray
    formula: np.ndarray


class FinishedRow(NamedTuple):
    """A row of a grid and its times: one pair (method, formula) per acceptance rate."""

    row: GridRow
    times: list[list[float]]


def mean_times(rows: list[GridRow]) -> GridTimes:
    """Times of every row, from the cache or computed."""
    missing = [row for row in rows if not cache.exists(_key_of(row))]
    computed = {}
    if missing:
        cache.require_computing()
        from speclab.experiment.pool import on_every_core  # a browser has no processes

        for finished in on_every_core(finish_row, missing):
            computed[finished.row] = finished.times

    # A row that the cache had is read here, where a damaged file is also computed
    # again.
    grid = []
    for row in rows:
        grid.append(computed.get(row) or finish_row(row).times)
    times = np.array(grid)
    return GridTimes(method=times[:, :, 0], formula=times[:, :, 1])


def finish_row(row: GridRow) -> FinishedRow:
    """One row and its times, from the cache or computed."""
    times = cache.load_or_compute(_key_of(row), lambda: compute_row(row))
    return FinishedRow(row, times)


def _key_of(row: GridRow) -> str:
    """The row's name in the cache: a hash of what is asked and of the code."""
    return cache_keys.digest(row, cache_keys.hash_of_method(METHODS[row.method], *CODE))
