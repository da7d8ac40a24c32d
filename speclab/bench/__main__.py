"""`python -m speclab.bench`: measures, and writes the results to bench.csv.

Contestants take turns, prompt by prompt, in the same session. A value is the median
over repeats; the row's note records their range, the machine and its load. The bench
needs an idle machine and takes a few minutes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator

from speclib import paths
from speclib.atomic_files import write_atomically

from . import orchestration, rates, speedups
from .bench_rows import COLUMNS, FULL, BenchRow, Size

Measure = Callable[[Size], Iterator[BenchRow]]

# Real models come before toys: the first worker decides whether the fork server imports
# torch, once for all workers.
MEASURES: tuple[Measure, ...] = (
    rates.virtual_clock,
    rates.importing,
    rates.drawing,
    rates.virtual_batch,
    speedups.stand_in,
    speedups.good_draft,
    orchestration.emulated,
    orchestration.controller,
)


def run_bench(
    measures: Iterable[Measure] = MEASURES, size: Size = FULL
) -> list[BenchRow]:
    """Runs measures in order, and prints each row when it is complete.

    reports/local/bench.csv is written once, after the last row.
    """
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


if __name__ == "__main__":  # otherwise the workers would run the bench, too
    run_bench()
