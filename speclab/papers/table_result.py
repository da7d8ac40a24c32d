"""A table's results: numbers by kind, verdicts on claims, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING

from .figures import Figure
from .ledger import LedgerLine, VerdictLine
from .numbers import Number
from .paper_schema import KINDS, Table

if TYPE_CHECKING:
    import pandas as pd

# Units in which a number from another machine can be compared with the printed one.
COMPARABLE_UNITS = ("x", "tokens", "runs")

# In the ledger, part of the note of a number whose runs were disturbed.
DISTURBED = "disturbed: other programs kept the machine busy"

# In the note of a number whose method looked up our texts, not the user's.
LOOKS_UP_OURS = "datastore: tasks of ours, put together like the prompts"

Key = tuple[str, str, str]  # a number's row, column and kind


@dataclass
class TableResult:
    """A table of a paper with everything that is known about it.

    lines, claims     its lines for the ledger and for the list of verdicts
    numbers           the table's numbers by row, column and kind
    over_same_devices
                      second numbers of speed-ups: over the best plain decoding on the
                      same devices (see ``same_devices``); plain decoding itself has 1,
                      with which claims compare
    claims_over_same_devices
                      verdicts on these
    cost_ratios       c as timed, by row and column
    left_out          cells that should be run but were not: claims on them are open
    machine           the machine of the timed numbers; "" if there are none
    are_stand_ins     whether the measured numbers come from other models and hardware
                      than the paper's
    figure            what a view needs to render a figure that is not a table
    errors            why a cell failed, by the cell's name
    """

    table: Table
    machine: str = ""
    are_stand_ins: bool = True
    lines: list[LedgerLine] = field(default_factory=list)
    claims: list[VerdictLine] = field(default_factory=list)
    numbers: dict[Key, Number] = field(default_factory=dict)
    over_same_devices: dict[Key, Number] = field(default_factory=dict)
    claims_over_same_devices: list[VerdictLine] = field(default_factory=list)
    cost_ratios: dict[tuple[str, str], float] = field(default_factory=dict)
    left_out: set[Key] = field(default_factory=set)
    figure: Figure | None = None
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of number in this table."""
        present = {kind for _, _, kind in self.numbers}
        return tuple(kind for kind in KINDS if kind in present)

    @property
    def has_numbers_of_ours(self) -> bool:
        """Whether it has any number that is not just printed."""
        return self.kinds not in ((), ("paper",))

    @property
    def values(self) -> dict[str, dict[tuple[str, str], float]]:
        """The numbers in tables and charts, by kind, then by row and column."""
        values: dict[str, dict[tuple[str, str], float]] = {}
        for (row, column, kind), number in self.numbers.items():
            values.setdefault(kind, {})[row, column] = number.value
        return values

    def add(
        self,
        row: str,
        column: str,
        kind: str,
        number: float | Number | None,
        *,
        setup: str = "",
        metric: str | None = None,
        unit: str | None = None,
        n: int | None = None,
        source: str = "",
        note: str = "",
        show: bool = True,
    ) -> None:
        """Adds a line to the ledger; with ``show`` also its number to the table.

        The arguments are the fields of ``LedgerLine``. Metric and unit default to what
        the table sets for the cell. An undefined number, such as the length of a run
        without a rejection, becomes an empty value.
        """
        if metric is None or unit is None:
            settings = self.table.settings_of(row, column)
            metric = settings["metric"] if metric is None else metric
            unit = settings["unit"] if unit is None else unit
        if isinstance(number, float | int):
            number = Number(float(number))
        if number is not None and isnan(number.value):
            number, note = None, f"undefined; {note}" if note else "undefined"
        if number is not None and number.is_busy:
            note = f"{note}; {DISTURBED}" if note else DISTURBED
        interval = None
        if number is not None and number.n > 1:
            interval = number.interval
        self.lines.append(
            LedgerLine(
                paper=self.table.paper.key,
                item=self.table.item,
                row=row,
                column=column,
                metric=metric,
                unit=unit,
                kind=kind,
                setup=setup,
                value=None if number is None else number.value,
                low=interval.low if interval else None,
                high=interval.high if interval else None,
                n=(number.n or None) if n is None and number is not None else n,
                source=source,
                note=note,
            )
        )
        if show and number is not None:
            self.numbers[row, column, kind] = number

    def setup_of_row(self, row: str, kind: str) -> str:
        """The setup shared by a row's numbers."""
        for line in self.lines:
            if (line.row, line.kind) == (row, kind):
                return line.setup
        return ""

    def error(self, row: str, column: str, kind: str = "virtual") -> float | None:
        """The relative error against print; None if either number is missing."""
        printed = self.numbers.get((row, column, "paper"))
        computed = self.numbers.get((row, column, kind))
        if printed is None or not printed.value or computed is None:
            return None
        return computed.value / printed.value - 1

    def frame(self) -> pd.DataFrame:
        """The table as a data frame, with rows and columns as printed, split by kind.

        Each kind is followed by its error against print: ``error`` for ``virtual``,
        ``error emulated`` and, if the unit allows the comparison, ``error measured``.
        """
        import pandas as pd

        labels = [*self.table.row_labels, *(row for row, _, _ in self.numbers)]
        rows = list(dict.fromkeys(labels))
        values = self.values
        series: dict[tuple[str, str], list[float | None]] = {}
        for column in self.table.column_labels:
            for kind in self.kinds:
                series[column, kind] = [values[kind].get((row, column)) for row in rows]
                if self._is_compared_with_print(kind):
                    name = "error" if kind == "virtual" else f"error {kind}"
                    series[column, name] = [self.error(r, column, kind) for r in rows]

        index = pd.Index(rows, name=self.table.rows)
        frame = pd.DataFrame(list(series.values()), columns=index, dtype=float).T
        names = [self.table.columns_are, "kind"]
        frame.columns = pd.MultiIndex.from_tuples(series, names=names)
        return frame.dropna(axis=1, how="all")

    def _is_compared_with_print(self, kind: str) -> bool:
        if kind == "paper" or "paper" not in self.kinds:
            return False
        return kind != "measured" or self.table.unit in COMPARABLE_UNITS
