"""What work has cost before, in seconds, by name: what an estimate of time rests on.

What this machine has seen is kept under the cache. Where it has seen nothing, the
committed ``reports/costs.csv`` of another machine is asked. It is corrected by how much
slower or faster this machine has been where both have seen the same.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from speclib import paths
from speclib.atomic_files import write_atomically

# Seconds of work that nobody has seen, by the first word of its name.
UNSEEN = {
    "script": 20.0,
    "virtual": 20.0,
    "emulated": 10.0,
    "measured": 8.0,
    "start": 6.0,
    "reports": 30.0,
}
LATEST = 0.5  # weight of the newest observation beside what was known before

COLUMNS = ("work", "seconds")


class Costs:
    """Seconds by the name of the work, as seen here or elsewhere."""

    def __init__(self, here: Mapping[str, float], elsewhere: Mapping[str, float]):
        self.here = dict(here)
        self.elsewhere = dict(elsewhere)

    @classmethod
    def read(cls) -> Costs:
        """What is known so far; files that cannot be read count as empty."""
        return cls(_read_here(), _read_elsewhere())

    def seconds(self, work: str, guess: float | None = None) -> float:
        """How long this work will take, most likely.

        ``guess`` counts where nobody has seen the very work; without one it is what
        other work of its kind took.
        """
        if work in self.here:
            return self.here[work]
        if work in self.elsewhere:
            return self.elsewhere[work] * self._slowness()
        if guess is not None:
            return guess
        return self._typical(work.split()[0])

    def saw(self, work: str, seconds: float) -> None:
        """Learns from work that was done just now, and keeps it."""
        before = self.here.get(work)
        if before is not None:
            seconds = LATEST * seconds + (1 - LATEST) * before
        self.here[work] = round(seconds, 3)
        write_atomically(_file_here(), json.dumps(self.here, indent=0))

    def publish(self) -> None:
        """Writes reports/costs.csv: what this machine has seen, over what was there."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        known = self.elsewhere | self.here
        for work in sorted(known):
            writer.writerow([work, f"{known[work]:.3g}"])
        write_atomically(_file_elsewhere(), out.getvalue())

    def _slowness(self) -> float:
        """Seconds here over seconds elsewhere; 1 before anything was seen here."""
        ratios = []
        for work, seconds in self.here.items():
            if self.elsewhere.get(work):
                ratios.append(seconds / self.elsewhere[work])
        return median(ratios) if ratios else 1.0

    def _typical(self, kind: str) -> float:
        """What work of this kind takes where nobody has seen the very work."""
        for known in (self.here, self.elsewhere):
            alike = [s for work, s in known.items() if work.split()[0] == kind]
            if alike:
                return median(alike)
        return float(UNSEEN[kind])


def _file_here() -> Path:
    return paths.CACHE / "costs.json"


def _file_elsewhere() -> Path:
    return paths.REPORTS / "costs.csv"


def _read_here() -> dict[str, float]:
    try:
        stored = json.loads(_file_here().read_text("utf-8"))
        return _sensible({str(work): float(stored[work]) for work in stored})
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _read_elsewhere() -> dict[str, float]:
    costs = {}
    try:
        with open(_file_elsewhere(), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                costs[row["work"]] = float(row["seconds"])
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}
    return _sensible(costs)


def _sensible(costs: dict[str, float]) -> dict[str, float]:
    """Those that have a name and are a number of seconds."""
    kept = {}
    for work, seconds in costs.items():
        if work.strip() and 0 <= seconds < float("inf"):
            kept[work] = seconds
    return kept
