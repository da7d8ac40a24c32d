"""A row of the reports' bench.csv, and how much is measured for it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from speclab import machine_facts

COLUMNS = ("name", "value", "unit", "aim", "holds", "note")


@dataclass(frozen=True)
class Size:
    """How much is measured.

    repeats     number of repeats of every measurement
    prompts     prompts per repeat of a race, with ``tokens`` new tokens each
    emulated    new tokens in an emulated request
    passes      operations timed to measure one duration
    operations  operations per repeat, for the controller and the virtual clock
    """

    repeats: int = 5
    prompts: int = 2
    tokens: int = 64
    emulated: int = 32
    passes: int = 11
    operations: int = 200


FULL = Size()


@dataclass(frozen=True)
class BenchRow:
    """One value in the bench.

    ``aim`` is a lower bound for the value, or with ``at_most`` an upper bound; None if
    the value has no aim.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    at_most: bool = False
    note: str = ""

    @property
    def holds(self) -> str:
        """Whether the aim is met: "yes" or "no"; "" without an aim. NaN is a "no"."""
        if self.aim is None:
            return ""
        if self.at_most:
            is_met = self.value <= self.aim
        else:
            is_met = self.value >= self.aim
        return "yes" if is_met else "no"

    def as_dict(self) -> dict[str, str]:
        """The row's columns, with the machine and its current load."""
        conditions = (
            f"{machine_facts.name()}, Python {platform.python_version()}, "
            f"load {machine_facts.load():.2f}"
        )
        return {
            "name": self.name,
            "value": f"{self.value:.4g}",
            "unit": self.unit,
            "aim": self._aim_in_words(),
            "holds": self.holds,
            "note": join_notes(self.note, conditions),
        }

    def _aim_in_words(self) -> str:
        if self.aim is None:
            return ""
        bound = "at most" if self.at_most else "at least"
        return f"{bound} {self.aim:.4g}"

    def __str__(self) -> str:
        verdict = ""
        if self.aim is not None:
            verdict = f" ({self._aim_in_words()}: {self.holds})"
        return f"{self.name}: {self.value:.4g} {self.unit}{verdict}; {self.note}"


def median_row(
    name: str,
    values: Sequence[float],
    unit: str,
    note: str = "",
    aim: float | None = None,
    at_most: bool = False,
) -> BenchRow:
    """The median of ``values`` as a row, with their range in the note."""
    range_of_values = f"median of {len(values)}: {min(values):.4g} .. {max(values):.4g}"
    return BenchRow(
        name, median(values), unit, aim, at_most, join_notes(range_of_values, note)
    )


def join_notes(*notes: str) -> str:
    """The notes that are not empty, joined."""
    return "; ".join(note for note in notes if note)
