"""The ledger: every number of every table with its kind, unit and setup, as one CSV.

The columns are a contract with readers outside this repository; up to ``setup`` they are the key.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from speclib.errors import SpeclibError
from speclib.experiment.atomic_files import write_atomically

KEY = 8  # the first so many columns tell rows apart


class LedgerRow(NamedTuple):
    """One number. ``setup``: "" for paper, the latency file for virtual, ``<latency>@<machine>``
    for emulated, else ``<pair>@<machine>/<dtype>/<threads>``, the dtype with what computes the
    draft where that is not torch. ``low``, ``high``: 95 % over ``n`` requests."""

    paper: str
    item: str
    row: str
    column: str
    metric: str
    unit: str
    kind: str
    setup: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    source: str = ""
    note: str = ""


class ClaimRow(NamedTuple):
    """A claim's verdict for one kind of number; ``holds``: yes, no, n/a."""

    paper: str
    item: str
    claim: str
    kind: str
    holds: str
    value: str
    expected: str
    note: str = ""


def to_csv(rows: Iterable[NamedTuple], columns: tuple[str, ...]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(v) for v in row] for row in rows)
    return out.getvalue()


def write_ledger(path: Path, rows: Iterable[LedgerRow]) -> None:
    """Writes ledger.csv, whole or not at all. Raises SpeclibError if two rows share a key."""
    rows, seen = list(rows), set()
    for row in rows:
        if row[:KEY] in seen:
            raise SpeclibError(
                f"two ledger rows share the key {row[:KEY]}: give them setups or "
                "metrics that differ"
            )
        seen.add(row[:KEY])
    write_atomically(path, to_csv(rows, LedgerRow._fields))


def write_claims(path: Path, rows: Iterable[ClaimRow]) -> None:
    write_atomically(path, to_csv(rows, ClaimRow._fields))


def read_ledger(path: Path) -> list[LedgerRow]:
    """Raises SpeclibError naming the file, and the line where one does not fit the columns."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    if tuple(header) != LedgerRow._fields:
        raise SpeclibError(
            f"{path} is no ledger: its columns are {', '.join(header)}; expected "
            f"{', '.join(LedgerRow._fields)}"
        )
    rows = []
    for number, line in enumerate(lines, 2):
        try:
            texts = dict(zip(header, line, strict=True))
            numbers = {
                name: type_(texts[name]) if texts[name] else None
                for name, type_ in (
                    ("value", float),
                    ("low", float),
                    ("high", float),
                    ("n", int),
                )
            }
            rows.append(LedgerRow(**texts | numbers))
        except ValueError as error:
            raise SpeclibError(f"{path}, line {number}: {error}") from error
    return rows


def merge(ours: Iterable[LedgerRow], theirs: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Both ledgers' rows; where a key is in both, ours. Another machine's has another setup."""
    rows = {row[:KEY]: row for row in theirs} | {row[:KEY]: row for row in ours}
    return list(rows.values())


def _text(value) -> str:
    """Numbers with the digits that matter, so that the file is the same everywhere."""
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
