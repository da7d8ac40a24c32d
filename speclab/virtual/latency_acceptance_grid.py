"""Runs a method's real code over a grid of drafter latencies and acceptance rates.

Heatmaps show the results. Each row is one drafter latency; rows are computed on all
cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .grid_row import GridRow, RequestTimes, compute_row


class GridTimes(NamedTuple):
    """Mean times of a request in target passes, two arrays of shape (rows, alphas).

    For ``method`` and ``formula`` see ``grid_row.RequestTimes``.
    """

    method: np.ndarray
    formula: np.ndarray


def mean_times(rows: list[GridRow]) -> GridTimes:
    """The times of all rows, computed on all cores."""
    from speclab.pool import on_every_core  # a browser has no processes

    times_of = dict(on_every_core(finish_row, rows))
    times = np.array([times_of[row] for row in rows])
    return GridTimes(method=times[:, :, 0], formula=times[:, :, 1])


def finish_row(row: GridRow) -> tuple[GridRow, list[RequestTimes]]:
    """Computes a row, and returns it with its times."""
    return row, compute_row(row)
