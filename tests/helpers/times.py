"""Where a run of the tests spends its time: by folder and grade, and the slowest files.

The seconds are those of all processes together. A short run says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

import pytest

GRADES = ("fast", "slow", "thorough", "browser")
WORTH_SAYING = 60.0  # seconds
SLOWEST = 10  # files


class Spent(NamedTuple):
    """Seconds of the tests of a grade in one file."""

    file: str
    grade: str
    seconds: float

    @property
    def folder(self) -> str:
        """As tests/worlds."""
        return str(PurePath(self.file).parent)


def grade_of(marks: Iterable[str]) -> str:
    """The last of the grades by which a test is marked; without any it is fast."""
    grade = "fast"
    for name in GRADES[1:]:
        if name in marks:
            grade = name
    return grade


def spent_by(reports: Iterable[pytest.TestReport]) -> list[Spent]:
    """An entry for each part of each test: its fixtures, the test, and clearing up."""
    spent = []
    for report in reports:
        file = report.nodeid.partition("::")[0]
        spent.append(Spent(file, grade_of(report.keywords), report.duration))
    return spent


def table_of_times(spent: Iterable[Spent]) -> list[str]:
    """The lines of the tables; none where all took less than a minute."""
    by_folder: dict[str, Counter[str]] = {}
    by_file: Counter[str] = Counter()
    by_grade: Counter[str] = Counter()
    for entry in spent:
        by_folder.setdefault(entry.folder, Counter())[entry.grade] += entry.seconds
        by_file[entry.file] += entry.seconds
        by_grade[entry.grade] += entry.seconds
    if by_grade.total() < WORTH_SAYING:
        return []

    grades = [grade for grade in GRADES if by_grade[grade]]
    lines = [_line("seconds", grades, "all")]
    folders = sorted(by_folder, key=lambda name: by_folder[name].total(), reverse=True)
    for folder in folders:
        lines.append(_line_of_seconds(folder, by_folder[folder], grades))
    lines.append(_line_of_seconds("all", by_grade, grades))

    lines.append("")
    for file, seconds in by_file.most_common(SLOWEST):
        lines.append(_line(file, [], f"{seconds:.0f}"))
    return lines


def _line_of_seconds(name: str, seconds: Counter[str], grades: list[str]) -> str:
    columns = [f"{seconds[grade]:.0f}" for grade in grades]
    return _line(name, columns, f"{seconds.total():.0f}")


def _line(name: str, columns: list[str], last: str) -> str:
    cells = [f"{cell:>10}" for cell in [*columns, last]]
    return f"{name:<44}{''.join(cells)}"
