"""`make bench`: ratios and rates measured in one run, against their aims, into reports/bench.csv.

Medians of several repeats; what is compared is interleaved. Machine and load go into the note.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import subprocess
import sys
import time
from statistics import median

from .experiment.cache import write_atomically
from .latency import Latency
from .operations import Prefix, Score
from .paths import REPORTS
from .tokens import Coins, Sampler
from .virtual import Virtual

COLUMNS = ("name", "value", "unit", "aim", "holds", "note")
REPEATS = 5


class Idle:
    """A model that computes nothing: what remains is the clock's own work."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        self.prefix = Prefix()

    def cut(self, length) -> None: ...

    def rows(self, text, last, sampler):
        return None


def virtual_operations(count: int = 50_000) -> float:
    """Operations per second of the virtual clock: submit, wait, record; two devices at once."""
    world = Virtual({"draft": Idle(), "target": Idle()}, Latency.ratio(5))
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    op, begun = Score((0,)), time.perf_counter()
    for _ in range(count // 2):
        world.all(world.submit("draft", op), world.submit("target", op))
    return count / (time.perf_counter() - begun)


def import_seconds() -> float:
    """Seconds of `import speclib` in a fresh interpreter."""
    code = ("import time; t = time.perf_counter(); import speclib; "
            "print(time.perf_counter() - t)")
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                check=True).stdout)


MEASURES = (
    ("virtual clock", virtual_operations, "operations/s", "at least", 50_000),
    ("import speclib", import_seconds, "s", "at most", 0.5),
)


def bench() -> list[dict]:
    """Measures everything, writes reports/bench.csv atomically, returns its rows."""
    note = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load " \
           f"{os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    rows = []
    for name, measure, unit, sense, aim in MEASURES:
        value = median(measure() for _ in range(REPEATS))
        holds = value >= aim if sense == "at least" else value <= aim
        rows.append(dict(zip(COLUMNS, (name, f"{value:.4g}", unit, f"{sense} {aim:g}",
                                       "yes" if holds else "no", note), strict=True)))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(REPORTS / "bench.csv", text.getvalue())
    return rows


if __name__ == "__main__":
    for row in bench():
        print("{name}: {value} {unit} ({aim}: {holds})".format(**row))
