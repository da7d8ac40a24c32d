"""What is known of one table: numbers by kind, verdicts on claims, what failed."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from speclab.experiment import other_load
from speclab.experiment.spec import CellResult, Profile

from .bootstrap import Resamples
from .estimates import Estimate, ledger_interval
from .figures import Figure
from .ledger import LedgerLine, VerdictLine
from .paper_schema import KINDS, Table

if TYPE_CHECKING:
    import pandas as pd

# Units in which a number of another machine may be compared with the printed one.
COMPARABLE_UNITS = ("x", "tokens", "runs")

TIMED_KINDS = ("emulated", "measured")

# How the note of a number in the ledger begins, or goes on, that was disturbed.
DISTURBED = "disturbed: other programs kept the machine busy"

# What the note of a number has whose method looked up no texts of the user's.
LOOKS_UP_OURS = "datastore: tasks of ours, put together like the prompts"


Key = tuple[str, str, str]  # of a number: its row, its column and its kind


Place = TypeVar("Place")


class Way(NamedTuple, Generic[Place]):
    """What would settle an open claim: more of these numbers, or of these cells.

    ``requests``: about so many timed ones of each would do, once enough are replayed;
    infinity: more than can be counted; 0: some.
    """

    to_time: AbstractSet[Place]
    to_replay: AbstractSet[Place] = frozenset()
    requests: float = 0


class NotSettled(NamedTuple):
    """A claim that is not settled: all numbers that it is about, and what it needs.

    Any one of the ``ways`` would settle it, the nearest comes first.
    """

    keys: AbstractSet[Key]
    ways: Sequence[Way[Key]]


@dataclass
class TableResult:
    """A table of a paper with everything that is known of it.

    ``lines`` and ``claims`` are what the ledger and the list of verdicts get.
    ``values`` are the numbers that tables and charts show: by kind, then by (row,
    column). By (row, column, kind), ``cell_results`` holds what came of each cell that
    was run, and ``samples`` the bootstrap resamples of its number, which may be
    compared with those of another cell one by one (see ``bootstrap``). A number without
    ``samples``, or with None, is exact. ``figure`` is what a view needs to render a
    figure that is no table. ``errors`` says by the name of a cell why it failed.

    ``over_same_devices`` are second numbers, of speed-ups: over the best that the same
    devices can do with plain decoding (see ``same_devices``). Plain decoding itself has
    1 there: a claim compares with the best that it can do on the devices of the other
    method. ``lacks_plain`` are the cells for which that has not been run yet, or not
    while the machine was quiet. ``claims_over_same_devices`` are verdicts on these
    numbers.

    Cells of which claims are not judged as usual, by (row, column, kind): ``left_out``
    are those for which there was no time, so a claim on them is open; ``disturbed`` are
    those during which other programs kept the machine busy, so a claim on them cannot
    be judged. Both must be known before lines and verdicts are added. ``earlier`` holds
    the ledger's lines of cells that were left out, where it has any.
    ``not_settled``: the claims that are open, or cannot be judged since some of their
    cells are disturbed.
    """

    table: Table
    profile: Profile
    lines: list[LedgerLine] = field(default_factory=list)
    claims: list[VerdictLine] = field(default_factory=list)
    values: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    cell_results: dict[Key, CellResult] = field(default_factory=dict)
    samples: dict[Key, Resamples | None] = field(default_factory=dict)
    over_same_devices: dict[Key, Estimate] = field(default_factory=dict)
    lacks_plain: set[Key] = field(default_factory=set)
    claims_over_same_devices: list[VerdictLine] = field(default_factory=list)
    figure: Figure | None = None
    errors: dict[str, str] = field(default_factory=dict)
    left_out: set[Key] = field(default_factory=set)
    disturbed: set[Key] = field(default_factory=set)
    earlier: dict[Key, LedgerLine] = field(default_factory=dict)
    not_settled: list[NotSettled] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of number that this table has."""
        return tuple(kind for kind in KINDS if self.values.get(kind))

    def add(
        self,
        row: str,
        column: str,
        kind: str,
        value: float | Estimate | None,
        *,
        setup: str = "",
        metric: str | None = None,
        unit: str | None = None,
        n: int | None = None,
        source: str = "",
        note: str = "",
        show: bool = True,
    ) -> None:
        """Adds a line to the ledger; with ``show`` its number goes to the table, too.

        The arguments are those of ``LedgerLine``, where an Estimate as ``value`` brings
        its interval, and the number of its requests unless ``n`` is given. Metric and
        unit are those that the table sets for the cell, unless others are given. A
        number that is undefined, such as the length of a run without a rejection,
        becomes an empty value. The note of a disturbed cell says so.
        """
        if metric is None:
            metric = self.table.settings_of(row, column)["metric"]
        if unit is None:
            unit = self.table.settings_of(row, column)["unit"]
        interval = None
        if isinstance(value, Estimate):
            interval = ledger_interval(value)
            if n is None:
                n = value.requests
            value = value.value
        if value is not None and isnan(value):
            value = None
            note = f"undefined; {note}" if note else "undefined"
        if (row, column, kind) in self.disturbed:
            note = f"{note}; {DISTURBED}" if note else DISTURBED

        ledger_line = LedgerLine(
            paper=self.table.paper.key,
            item=self.table.item,
            row=row,
            column=column,
            metric=metric,
            unit=unit,
            kind=kind,
            setup=setup,
            value=value,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            n=n,
            source=source,
            note=note,
        )
        self.lines.append(ledger_line)
        if show and value is not None:
            self.values.setdefault(kind, {})[row, column] = value

    def estimate(self, row: str, column: str, kind: str) -> Estimate | None:
        """The number of a cell, and how sure it is; None where there is none."""
        value = self.values.get(kind, {}).get((row, column))
        if value is None:
            return None
        return Estimate(value, self.samples.get((row, column, kind)))

    @property
    def open_claims(self) -> list[VerdictLine]:
        """The verdicts on timed numbers that more requests might settle."""
        verdicts = [*self.claims, *self.claims_over_same_devices]
        return [v for v in verdicts if v.holds == "open" and v.kind in TIMED_KINDS]

    def setup_of_row(self, row: str, kind: str) -> str:
        """The setup that the numbers of a row share."""
        for ledger_line in self.lines:
            if (ledger_line.row, ledger_line.kind) == (row, kind):
                return ledger_line.setup
        return ""

    def error(self, row: str, column: str, kind: str = "virtual") -> float | None:
        """The relative error against print; None where either number is missing."""
        printed = self.values.get("paper", {}).get((row, column))
        computed = self.values.get(kind, {}).get((row, column))
        if not printed or computed is None:
            return None
        return computed / printed - 1

    def frame(self) -> pd.DataFrame:
        """The table as a data frame, with rows and columns as printed, split by kind.

        Beside the kinds stand their errors against print: ``error`` is that of
        ``virtual``, the others are ``error emulated`` and, where the unit allows it,
        ``error measured``.
        """
        import pandas as pd

        rows = self._all_row_labels()
        series: dict[tuple[str, str], list[float | None]] = {}
        for column in self.table.column_labels:
            for kind in self.kinds:
                values = self.values[kind]
                series[column, kind] = [values.get((row, column)) for row in rows]
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

    def _all_row_labels(self) -> list[str]:
        """The printed rows, then those that only the engine has."""
        labels = list(self.table.row_labels)
        for values in self.values.values():
            labels += [row for row, _ in values]
        return list(dict.fromkeys(labels))


def quiet_requests(cell_result: CellResult) -> list[int]:
    """The numbers of a cell's requests beside which no other program was busy."""
    shares = cell_result.facts.get("others", [0.0] * len(cell_result.stats))
    return [n for n, share in enumerate(shares) if not other_load.is_disturbed(share)]


def is_disturbed(cell_result: CellResult) -> bool:
    """Whether other programs kept the machine busy beside a cell.

    Of a cell with replays its quiet requests are enough, if there are any: the others
    are then left out (see ``two_phase``).
    """
    quiet = quiet_requests(cell_result)
    if cell_result.replays is not None:
        return not quiet
    return len(quiet) < len(cell_result.stats)
