"""`make bench`: rates, costs and ratios of this machine against their aims, in reports/bench.csv.

What is compared runs in one go, prompt by prompt in turn; a value is the median of repeats, their
range in the note beside the machine and its load. Needs an idle machine; takes about six minutes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from speclib import paths
from speclib.experiment.atomic_files import write_atomically

from . import contention, layered, orchestration, rates, speedups
from .rows import COLUMNS, FULL, Row, Size

# Real models before toys: the first worker decides whether all are forked with torch imported.
MEASURES = (
    rates.virtual_clock,
    rates.importing,
    rates.drawing,
    contention.two_targets,
    speedups.stand_in,
    speedups.good_draft,
    layered.drafting,
    orchestration.cancelled,
    orchestration.emulated,
    orchestration.controller,
)


def bench(measures: Iterable = MEASURES, size: Size = FULL) -> list[Row]:
    """Measures in order, printing each row as it comes; writes reports/bench.csv atomically, once
    all are there; returns the rows."""
    rows = []
    for measure in measures:
        for row in measure(size):
            print(row, flush=True)
            rows.append(row)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.as_dict() for row in rows)
    write_atomically(paths.REPORTS / "bench.csv", text.getvalue())
    return rows
