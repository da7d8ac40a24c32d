"""The ledger: every number of every table with kind, unit and setup, as one CSV file.

The verdicts on claims are a second one. The columns of both are a contract with readers
outside this repository.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from speclib.atomic_files import write_atomically
from speclib.errors import BadValue, unknown_name

KINDS = ("paper", "virtual", "emulated", "measured")
KEY = 8  # the first so many columns of the ledger tell rows apart

# Metrics of a speed-up's further rows, beside its own: see ``same_devices``.
OVER_SAME_DEVICES = "speedup_over_same_devices"
DEVICE_SECONDS = "device_seconds_per_token"

# What the id of a claim ends in where it is judged by ``OVER_SAME_DEVICES``.
SAME_DEVICES_SUFFIX = "@same-devices"

# What to do about a file that is damaged.
RESTORE = "restore it, for instance with `git checkout`, or remove it and run again"


class LedgerRow(NamedTuple):
    """One number.

    ``setup`` says where it comes from:

    - "" for paper;
    - the latency file for virtual;
    - ``<latency>@<machine>`` for emulated;
    - ``<pair>@<machine>/<dtype>/<threads>`` for measured, the dtype with what computes
      the draft where that is not torch.

    ``low`` and ``high`` are the 95 % interval over ``n`` requests (see ``estimates``).
    They are empty for one request, and for a number that needs no requests.

    A speed-up has further lines for the same cell, of other metrics: with the prefill,
    over the same devices, and the device-seconds per token.
    """

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
    """A claim's verdict for one kind of number.

    ``holds`` is yes or no where the numbers' 95 % intervals settle it, else open. It is
    n/a where nothing can be judged. The ``note`` says why.

    In the file a ``claim`` that ends in ``SAME_DEVICES_SUFFIX`` is the claim before it,
    judged by speed-ups over the same devices.
    """

    paper: str
    item: str
    claim: str
    kind: str
    holds: str
    value: str
    expected: str
    note: str = ""


# -- writing ---------------------------------------------------------------------------
def write_ledger(path: Path, rows: Iterable[LedgerRow]) -> None:
    """Writes ledger.csv, whole or not at all.

    Raises BadValue if two rows share a key.
    """
    rows = list(rows)
    seen = set()
    for row in rows:
        key = row[:KEY]
        if key in seen:
            raise BadValue(
                f"two ledger rows share the key {key}: give them setups or "
                "metrics that differ"
            )
        seen.add(key)
    write_atomically(path, to_csv(rows, LedgerRow._fields))


def write_claims(path: Path, rows: Iterable[ClaimRow]) -> None:
    """Writes claims.csv, whole or not at all."""
    write_atomically(path, to_csv(rows, ClaimRow._fields))


def to_csv(rows: Iterable[Iterable[object]], columns: Iterable[str]) -> str:
    """Rows as CSV with a header, the same on every system."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_to_text(value) for value in row])
    return out.getvalue()


def _to_text(value: object) -> str:
    """Numbers with the digits that matter, so that the file is the same everywhere."""
    is_nan = value != value
    if value is None or is_nan:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


# -- reading ---------------------------------------------------------------------------
def read_ledger(
    path: Path, items: Mapping[str, Collection[str]] | None = None
) -> list[LedgerRow]:
    """The rows of a ledger.

    ``items``: by paper, those that there are; None: whatever the file has.

    Raises BadValue naming the file, and the line that does not fit the columns, or
    whose numbers, kind, paper or item cannot be.
    """
    rows = []
    for number, texts in _read_csv(path, LedgerRow._fields, "ledger"):
        values: dict[str, Any] = dict(texts)
        try:
            for name in ("value", "low", "high"):
                values[name] = _read_number(texts[name])
            values["n"] = int(texts["n"]) if texts["n"] else None
            row = LedgerRow(**values)
            _check(row, items)
        except ValueError as error:
            raise BadValue(f"{path}, line {number}: {error}; {RESTORE}") from error
        rows.append(row)
    return rows


def _check(row: LedgerRow, items: Mapping[str, Collection[str]] | None) -> None:
    """Raises BadValue for a row that says what cannot be."""
    if row.kind not in KINDS:
        raise unknown_name(f"unknown kind {row.kind!r}", row.kind, KINDS)
    if row.n is not None and row.n < 1:
        raise BadValue(f"n is {row.n}: a number rests on 1 request or more")
    if (row.low is None) != (row.high is None):
        given, missing = ("low", "high") if row.high is None else ("high", "low")
        raise BadValue(f"{given} is given and {missing} is not")
    if row.low is not None and row.high is not None and row.low > row.high:
        raise BadValue(f"low is {row.low:g}, which is above high, {row.high:g}")

    if items is None:
        return
    if row.paper not in items:
        raise unknown_name(f"unknown paper {row.paper!r}", row.paper, items)
    if row.item not in items[row.paper]:
        problem = f"unknown item {row.item!r} of {row.paper!r}"
        raise unknown_name(problem, row.item, items[row.paper])


def read_claims(path: Path) -> list[ClaimRow]:
    """The verdicts of a claims file; none if there is no such file.

    Raises BadValue naming the file, and the line where one does not fit the columns.
    """
    if not path.exists():
        return []
    rows = _read_csv(path, ClaimRow._fields, "list of claims")
    return [ClaimRow(**texts) for _, texts in rows]


def _read_number(text: str) -> float | None:
    if not text:
        return None
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text!r} is no finite number")
    return number


def _read_csv(
    path: Path, columns: tuple[str, ...], what: str
) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file: the line that each ends in, and its texts by column.

    ``what`` says in errors what the file should be.
    """
    rows = []
    number = 0
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if tuple(header) != columns:
                raise BadValue(
                    f"{path} is no {what}: its columns are {_shorten(header)}; "
                    f"expected {', '.join(columns)}"
                )
            number = reader.line_num
            for texts in reader:
                number = reader.line_num
                if len(texts) != len(columns):
                    raise BadValue(
                        f"{path}, line {number}: {len(texts)} values, expected "
                        f"{len(columns)}; {RESTORE}"
                    )
                rows.append((number, dict(zip(columns, texts, strict=True))))
    except csv.Error as error:
        raise BadValue(
            f"{path}, after line {number}: {error}: a quote is not closed, or a field "
            f"is too long; {RESTORE}"
        ) from error
    except UnicodeDecodeError as error:
        raise BadValue(
            f"{path}, after line {number}: not UTF-8 ({error.reason}); {RESTORE}"
        ) from error
    except OSError as error:
        raise BadValue(f"cannot read {path}: {error.strerror}") from error
    return rows


def _shorten(names: list[str]) -> str:
    """Names of columns as one text, which a damaged file may have made very long."""
    text = ", ".join(names)
    return text if len(text) <= 200 else f"{text[:200]} ..."


# -- merging ---------------------------------------------------------------------------
def merge(ours: Iterable[LedgerRow], theirs: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Both ledgers' rows; where a key is in both, ours.

    Another machine's rows have another setup, so they stay beside ours.
    """
    rows = {row[:KEY]: row for row in theirs}
    rows |= {row[:KEY]: row for row in ours}
    return list(rows.values())
