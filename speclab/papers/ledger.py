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


class Cell(NamedTuple):
    """Where a number of a paper stands: the item, and in it the row and the column."""

    item: str
    row: str
    column: str


class LedgerLine(NamedTuple):
    """One number.

    ``setup`` says where it comes from:

    - "" for paper;
    - the latency file for virtual;
    - ``<latency>@<machine>`` for emulated;
    - ``<pair>@<machine>/<dtype>/<threads>`` for measured, the dtype with what computes
      the draft where that is not torch.

    ``low`` and ``high`` are the 95 % interval (see ``numbers``), ``n`` the requests
    behind it. They are empty for one request, and for a number that needs none.

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


SETTLED = ("yes", "no")  # what ``VerdictLine.holds`` is where runs settled it


class VerdictLine(NamedTuple):
    """A claim's verdict for one kind of number.

    ``holds`` is yes or no where the numbers' 95 % intervals settle it, else open. It is
    "not judged" where nothing can be. The ``note`` says why.

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
def write_ledger(path: Path, lines: Iterable[LedgerLine]) -> None:
    """Writes ledger.csv, whole or not at all.

    Raises BadValue if two lines share a key.
    """
    lines = list(lines)
    seen = set()
    for line in lines:
        key = line[:KEY]
        if key in seen:
            raise BadValue(
                f"two ledger lines share the key {key}: give them setups or "
                "metrics that differ"
            )
        seen.add(key)
    write_atomically(path, to_csv(lines, LedgerLine._fields))


def write_claims(path: Path, lines: Iterable[VerdictLine]) -> None:
    """Writes claims.csv, whole or not at all."""
    write_atomically(path, to_csv(lines, VerdictLine._fields))


def to_csv(lines: Iterable[Iterable[object]], columns: Iterable[str]) -> str:
    """Rows as CSV with a header, the same on every system."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        writer.writerow([_to_text(value) for value in line])
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
) -> list[LedgerLine]:
    """The lines of a ledger.

    ``items``: by paper, those that there are; None: whatever the file has.

    Raises BadValue naming the file, and the line that does not fit the columns, or
    whose numbers, kind, paper or item cannot be.
    """
    lines = []
    for number, texts in _read_csv(path, LedgerLine._fields, "ledger"):
        values: dict[str, Any] = dict(texts)
        try:
            for name in ("value", "low", "high"):
                values[name] = _read_number(texts[name])
            values["n"] = int(texts["n"]) if texts["n"] else None
            line = LedgerLine(**values)
            _check(line, items)
        except ValueError as error:
            raise BadValue(f"{path}, line {number}: {error}; {RESTORE}") from error
        lines.append(line)
    return lines


def _check(line: LedgerLine, items: Mapping[str, Collection[str]] | None) -> None:
    """Raises BadValue for a line that says what cannot be."""
    if line.kind not in KINDS:
        raise unknown_name(f"unknown kind {line.kind!r}", line.kind, KINDS)
    if line.n is not None and line.n < 1:
        raise BadValue(f"n is {line.n}: a number rests on 1 request or more")
    if (line.low is None) != (line.high is None):
        given, missing = ("low", "high") if line.high is None else ("high", "low")
        raise BadValue(f"{given} is given and {missing} is not")
    if line.low is not None and line.high is not None and line.low > line.high:
        raise BadValue(f"low is {line.low:g}, which is above high, {line.high:g}")

    if items is None:
        return
    if line.paper not in items:
        raise unknown_name(f"unknown paper {line.paper!r}", line.paper, items)
    if line.item not in items[line.paper]:
        problem = f"unknown item {line.item!r} of {line.paper!r}"
        raise unknown_name(problem, line.item, items[line.paper])


def read_claims(path: Path) -> list[VerdictLine]:
    """The verdicts of a claims file; none if there is no such file.

    Raises BadValue naming the file, and the line where one does not fit the columns.
    """
    if not path.exists():
        return []
    lines = _read_csv(path, VerdictLine._fields, "list of claims")
    return [VerdictLine(**texts) for _, texts in lines]


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
    """The lines of a CSV file: the number of each, and its texts by column.

    ``what`` says in errors what the file should be.
    """
    lines = []
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
                lines.append((number, dict(zip(columns, texts, strict=True))))
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
    return lines


def _shorten(names: list[str]) -> str:
    """Names of columns as one text, which a damaged file may have made very long."""
    text = ", ".join(names)
    return text if len(text) <= 200 else f"{text[:200]} ..."
