"""The numbers that a table's page shows first: a point per pair of models or task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from speclab.papers.fill import TableNumbers
from speclab.papers.ledger import LedgerLine
from speclab.papers.paper_schema import MainQuantity, Table
from speclab.papers.table_result import COMPARABLE_UNITS, TableResult

MOST_POINTS = 24  # a table with more cells gets no picture of them


@dataclass(frozen=True)
class Point:
    """The numbers of one pair or task by kind, in the printed unit.

    against       the baseline's numbers of the same quantity, by kind
    interval      of the measured number, 95 %
    ceiling       upper bound on the method's gain at the paper's own latencies
    is_calibrated whether its printed number set the prediction
    """

    label: str
    numbers: dict[str, float]
    against: dict[str, float] = field(default_factory=dict)
    interval: tuple[float, float] | None = None
    ceiling: float | None = None
    is_calibrated: bool = False
    against_is_calibrated: bool = False

    @property
    def error(self) -> float | None:
        """The relative difference of the prediction from print; None without one."""
        return relative_error(self.numbers) if not self.is_calibrated else None

    @property
    def error_of_baseline(self) -> float | None:
        """The relative difference of the baseline's prediction; None without one."""
        return relative_error(self.against) if not self.against_is_calibrated else None

    def gain(self, kind: str) -> float | None:
        """The number divided by the baseline's."""
        if kind not in self.numbers or not self.against.get(kind):
            return None
        return self.numbers[kind] / self.against[kind]


def relative_error(numbers: Mapping[str, float]) -> float | None:
    """The prediction's difference from print, relative to it."""
    if not numbers.get("paper") or "virtual" not in numbers:
        return None
    return numbers["virtual"] / numbers["paper"] - 1


def points_of(result: TableResult) -> list[Point]:
    """The points of the main quantity.

    If the table names none, the points are its cells, provided that they are few and
    that our numbers can be compared with print.
    """
    main = result.table.main
    if main is None:
        return _points_of_cells(result)
    labels_of = main.labels
    against = main.against if isinstance(main.against, tuple) else (main.against,)
    table = result.table
    others = table.column_labels if main.over == "columns" else table.row_labels
    points = []
    for number, label in enumerate(labels_of):
        model = f"{label.split(' / ')[0]}, " if len(labels_of) > 1 else ""
        baseline = against[number % len(against)]
        for other in others:
            if fnmatchcase(other, main.among):
                name = model + _starred_part(main.among, other)
                points.append(_point(result, main, name, label, baseline, other))
    return [point for point in points if point.numbers]


def _starred_part(pattern: str, label: str) -> str:
    before, _, after = pattern.partition("*")
    return label.removeprefix(before).removesuffix(after)


def _point(
    result: TableResult,
    main: MainQuantity,
    name: str,
    label: str,
    baseline: str | None,
    other: str,
) -> Point:
    def numbers(of: str, by: str | None) -> dict[str, float]:
        found = {}
        for kind in result.kinds:
            top = result.numbers.get((*cell(of), kind))
            bottom = result.numbers.get((*cell(by), kind)) if by else None
            if top is not None and (bottom is not None or not by):
                found[kind] = top.value / (bottom.value if bottom else 1)
        return found

    def cell(of: str) -> tuple[str, str]:
        return (of, other) if main.over == "columns" else (other, of)

    def is_calibrated(of: str) -> bool:
        return cell(of) in calibrated

    calibrated = calibrated_cells(result)
    own = main.by or label
    against: dict[str, float] = {}
    if baseline:
        against = numbers(label, baseline) if main.by else numbers(baseline, None)
    ceiling = None
    if main.has_ceiling:
        ceiling = TableNumbers(result, "virtual").cost_ratio(*cell(label))
    return Point(
        name,
        numbers(label, main.by),
        against,
        None if main.by else measured_interval(result, *cell(label)),
        ceiling,
        is_calibrated(own),
        bool(baseline) and is_calibrated(str(baseline)),
    )


def _points_of_cells(result: TableResult) -> list[Point]:
    """The cells with two numbers in the table's unit; none if there are too many."""
    table = result.table
    scale = table.scale(table.unit)
    calibrated = calibrated_cells(result)
    shown = ["paper", "virtual"]
    if table.unit in COMPARABLE_UNITS:
        shown.append("measured")
    points = []
    for row in table.row_labels:
        for column in table.column_labels:
            numbers = {}
            for kind in shown:
                if (row, column, kind) in result.numbers:
                    numbers[kind] = result.numbers[row, column, kind].value * scale
            is_own_unit = table.settings_of(row, column)["unit"] == table.unit
            if len(numbers) < 2 or not is_own_unit:
                continue
            interval = measured_interval(result, row, column)
            point = Point(
                row if row == column else f"{row}, {column}",
                numbers,
                interval=interval if "measured" in numbers else None,
                is_calibrated=(row, column) in calibrated,
            )
            points.append(point)
    return points if len(points) <= MOST_POINTS else []


def calibrated_cells(result: TableResult) -> set[tuple[str, str]]:
    """The cells whose printed numbers set the acceptance rate or the clock."""
    return {
        (line.row, line.column)
        for line in result.lines
        if line.note.startswith("calibration")
    }


def measured_interval(
    result: TableResult, row: str, column: str
) -> tuple[float, float] | None:
    """The 95 % interval of a measured cell, in the printed unit."""
    number = result.numbers.get((row, column, "measured"))
    if number is None or number.n < 2:
        return None
    low, high = number.interval
    scale = result.table.scale(result.table.unit)
    return low * scale, high * scale


def is_main_line(table: Table, line: LedgerLine) -> bool:
    """Whether a line is the main number of its cell, not a second one."""
    settings = table.settings_of(line.row, line.column)
    return bool(settings["metric"] == line.metric)
