"""The ledger: every number of every table with kind, unit and setup, as one CSV file.

The verdicts on claims are in a second file. Tools outside this repository rely on the
columns of both files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from speclib.atomic_files import write_atomically
from speclib.errors import BadValue

KEY = 8  # the first KEY columns identify a line of the ledger

# Metrics of the extra lines that a speed-up has: see ``same_devices``.
OVER_SAME_DEVICES = "speedup_over_same_devices"
DEVICE_SECONDS = "device_seconds_per_token"

# Suffix of a claim's id if the claim is judged by ``OVER_SAME_DEVICES``.
SAME_DEVICES_SUFFIX = "@same-devices"

RESTORE = "restore it, for instance with `git checkout`, or remove it and run again"


class Cell(NamedTuple):
    """Where a paper prints a number: the item, its row and its column."""

    item: str
    row: str
    column: str


class LedgerLine(NamedTuple):
    """One number.

    ``setup`` says where it comes from:

    - "" for paper;
    - the latency file for virtual;
    - ``<latency>@<machine>`` for emulated;
    - ``<pair>@<machine>/<dtype>/<threads>`` for measured; the dtype includes the
      draft's backend if that is not torch.

    ``low`` and ``high`` are the 95 % interval (see ``numbers``), ``n`` is the number of
    requests behind it. They are empty for a single request, and for an exact number.

    A speed-up has more lines for the same cell, with other metrics: with the prefill,
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


class VerdictLine(NamedTuple):
    """A claim's verdict for one kind of number.

    ``holds`` is yes or no if the numbers' 95 % intervals settle it, and open otherwise.
    It is "not judged" if no verdict is possible; the ``note`` gives the reason.

    In the file, a ``claim`` that ends in ``SAME_DEVICES_SUFFIX`` is the same claim,
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
    """Writes ledger.csv atomically.

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
    """Writes claims.csv atomically."""
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
    """Rounds floats to six digits, so that the file is the same on every system."""
    is_nan = value != value
    if value is None or is_nan:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


# -- reading ---------------------------------------------------------------------------
def read_claims(path: Path) -> list[VerdictLine]:
    """The verdicts in a claims file; none if the file is missing.

    Raises BadValue naming the file if it has other columns.
    """
    if not path.exists():
        return []
    reader = csv.DictReader(io.StringIO(path.read_text("utf-8")))
    if tuple(reader.fieldnames or ()) != VerdictLine._fields:
        columns = ", ".join(VerdictLine._fields)
        raise BadValue(f"{path} has other columns than {columns}: {RESTORE}")
    return [VerdictLine(**texts) for texts in reader]
