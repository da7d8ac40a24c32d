"""PEARL's table of how long a draft's KV cache takes from device to device.

Knows no network.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from speclab.experiment.engines.cache_transport import transport_seconds
from speclib import machine
from speclib.errors import SpeclibError

from .bootstrap import RESAMPLES, Resamples
from .estimates import Estimate
from .table_result import TableResult

REPEATS = 25


def add_cache_transport(result: TableResult) -> None:
    """Adds the median seconds of a move, a column per number of tokens.

    A pair that cannot be built leaves the rest standing and is named in
    ``result.errors``.
    """
    table = result.table
    (row,) = table.row_labels
    settings = table.settings_of(row, "", "measured")
    lengths = tuple(
        int(table.settings_of(row, column)["tokens"]) for column in table.column_labels
    )
    try:
        seconds = transport_seconds(settings["pair"], lengths, REPEATS)
    except (SpeclibError, ImportError) as error:
        result.errors[f"{table.item}, {row}"] = str(error)
        return

    for column, length in zip(table.column_labels, lengths, strict=True):
        times = np.array(seconds[length])
        samples = _resample_median(times)
        result.samples[row, column, "measured"] = samples
        result.add(
            row,
            column,
            "measured",
            Estimate(float(median(times)), samples),
            setup=f"{settings['pair']}@{machine.name()}/float32/1",
            n=len(times),
            source="measured",
            note=f"median of {len(times)} moves between two processes on one machine",
        )


def _resample_median(times: np.ndarray) -> Resamples:
    """The median of ``times`` [n] in each resample."""
    rng = np.random.default_rng(len(times))
    drawn = rng.choice(times, (RESAMPLES, len(times)))
    return Resamples(np.median(drawn, axis=1), requests=len(times))
