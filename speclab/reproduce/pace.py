"""How long work takes, by what its like took the last time.

What is alike is decoded by the same workers, or on the same clock for the same paper.
What this machine has seen is stored under the cache, so the next run knows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from speclib import paths
from speclib.atomic_files import write_atomically

# Seconds before anything was seen, on two cores with the embedded models: of a script,
# of a decoded token by its kind, and of the pages of one paper on one core.
FIRST_GUESS = {
    "script": 20.0,
    "virtual": 1e-4,
    "emulated": 0.01,
    "measured": 0.04,
    "full-pages": 25.0,
    "quick-pages": 15.0,
    "audit-page": 20.0,
}


class Pace:
    """Seconds per unit of work, as it was seen last.

    A unit is a decoded token, or a whole script or page; what was needed to begin, such
    as a start of workers, is part of the seconds. Work is named by its kind, which is a
    key of ``FIRST_GUESS``, and by what it is ``of``.
    """

    def __init__(self, seen: Mapping[str, float]):
        self._seen = dict(seen)

    @classmethod
    def read(cls) -> Pace:
        """What this machine has seen; a file that cannot be read counts as empty."""
        return cls(_read_stored())

    def expect(self, kind: str, of: str = "", units: float = 1) -> float:
        """How many seconds this work will take, most likely.

        Where nobody has seen its like, it is as slow as its kind was seen last.
        """
        guess = self._seen.get(kind, FIRST_GUESS[kind])
        return units * self._seen.get(_name(kind, of), guess)

    def note(
        self, kind: str, of: str = "", units: float = 1, *, seconds: float
    ) -> None:
        """Notes how many seconds work took that was done just now, and stores it."""
        for name in (kind, _name(kind, of)):
            self._seen[name] = seconds / units
        write_atomically(_file(), json.dumps(self._seen, indent=0))


def _name(kind: str, of: str) -> str:
    return f"{kind} {of}" if of else kind


def _file() -> Path:
    return paths.CACHE / "pace.json"


def _read_stored() -> dict[str, float]:
    """Those that are a number of seconds."""
    try:
        stored = json.loads(_file().read_text("utf-8"))
        seen = {str(work): float(stored[work]) for work in stored}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return {work: each for work, each in seen.items() if 0 <= each < float("inf")}
