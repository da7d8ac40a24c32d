"""A row of reports/bench.csv, and how much is measured for it. Knows nothing of what it measures."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from speclib.experiment import machine

COLUMNS = ("name", "value", "unit", "aim", "holds", "note")


@dataclass(frozen=True)
class Size:
    """``repeats`` of everything; ``prompts`` of ``tokens`` tokens per repeat of a race;
    ``emulated``: tokens of an emulated request; ``passes``: operations behind one duration;
    ``operations``: of the controller and the virtual clock, per repeat."""

    repeats: int = 5
    prompts: int = 2
    tokens: int = 64
    emulated: int = 32
    passes: int = 11
    operations: int = 200


FULL = Size()


@dataclass(frozen=True)
class Row:
    """``aim``: the value wanted, at least that or, with ``most``, at most; None: just shown."""

    name: str
    value: float
    unit: str
    aim: float | None = None
    most: bool = False
    note: str = ""

    @property
    def holds(self) -> str:
        """yes or no; empty without an aim. A value that is no number holds nothing."""
        if self.aim is None:
            return ""
        return (
            "yes"
            if (self.value <= self.aim if self.most else self.value >= self.aim)
            else "no"
        )

    def as_dict(self) -> dict[str, str]:
        """The row's columns, with the machine and its load now."""
        here = f"{machine.name()}, Python {platform.python_version()}, load {machine.load():.2f}"
        aim = (
            ""
            if self.aim is None
            else f"at {'most' if self.most else 'least'} {self.aim:.4g}"
        )
        return dict(
            zip(
                COLUMNS,
                (
                    self.name,
                    f"{self.value:.4g}",
                    self.unit,
                    aim,
                    self.holds,
                    "; ".join(filter(None, (self.note, here))),
                ),
                strict=True,
            )
        )

    def __str__(self) -> str:
        shown = self.as_dict()
        aim = f" ({shown['aim']}: {self.holds})" if self.aim is not None else ""
        return f"{self.name}: {shown['value']} {self.unit}{aim}; {self.note}"


def middle(name: str, values: Sequence[float], unit: str, note: str = "", **aim) -> Row:
    """The median of ``values`` as a row; their range goes into the note."""
    spread = f"median of {len(values)}: {min(values):.4g} .. {max(values):.4g}"
    return Row(
        name, median(values), unit, note="; ".join(filter(None, (spread, note))), **aim
    )
