"""Runs the measures of the bench, and writes what they gave into reports/bench.csv.

What is compared runs in one go, prompt by prompt in turn. A value is the median of
repeats; their range is in the row's note, with the machine and its load. The bench
needs an idle machine and takes about six minutes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator

from speclib import paths
from speclib.atomic_files import write_atomically

from . import (
    batches,
    caches,
    contention,
    layered,
    orchestration,
    rates,
    speedups,
    vocabularies,
)
from .bench_rows import COLUMNS, FULL, BenchRow, Size

Measure = Callable[[Size], Iterator[BenchRow]]

# Real models before toys: the first worker that is started decides whether the fork
# server imports torch, once for all workers.
MEASURES: tuple[Measure, ...] = (
    rates.virtual_clock,
    rates.importing,
    rates.drawing,
    contention.two_targets,
    caches.passes,
    speedups.stand_in,
    speedups.good_draft,
    batches.of_real_models,
    batches.of_the_virtual_clock,
    layered.drafting,
    orchestration.cancelled,
    orchestration.emulated,
    orchestration.controller,
    vocabularies.sampling,
    vocabularies.messages,
)


def run_bench(
    measures: Iterable[Measure] = MEASURES, size: Size = FULL
) -> list[BenchRow]:
    """Run measures in order and print each row as it comes.

    reports/bench.csv is written once all rows are there, whole or not at all.
    """
    rows = []
    for measure in measures:
        for row in measure(size):
            print(row, flush=True)
            rows.append(row)
    write_atomically(paths.REPORTS / "bench.csv", _to_csv(rows))
    return rows


def _to_csv(rows: list[BenchRow]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row.as_dict())
    return text.getvalue()
