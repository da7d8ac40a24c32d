"""The committed virtual numbers: ``data/virtual.csv``.

They depend only on the code and ``data``, so they are computed once and stored, and a
report reads them from this file. ``python -m speclab virtual`` computes what the file
lacks, and with ``--recompute`` everything. A line is one statistic of one cell::

    cell      a hash of the cell's spec; ``name`` describes the cell
    stat      the statistic, and after "@" the tokens that counts are scaled to
    value, n  the number, and the number of requests, or parts of them, behind it
    without   the number without each of them, from which the interval is computed
    gamma, c, how, settings
              the window used, the cost ratio, and what was chosen among several
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from speclab.runs.rows import CellRuns
from speclab.runs.spec import Spec
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import BadValue

from .numbers import Number
from .same_devices import IF_BOUND, is_speedup
from .statistics import SIGNED, number_of
from .table_cells import TableCell

COLUMNS = (
    "cell",
    "stat",
    "value",
    "n",
    "without",
    "gamma",
    "c",
    "how",
    "settings",
    "name",
)
DEVICE_SECONDS = "device_seconds_per_token"
# The fields in a cell's hash, in this order; another order would give other hashes.
HASHED = (
    "kind",
    "method",
    "gamma",
    "settings",
    "over",
    "cancel",
    "per_token",
    "doubt",
    "batch",
    "latency",
    "alpha",
    "requests",
    "tokens",
    "temperature",
    "seed",
    "with_tail",
)
RECOMPUTE = "recompute it with `python -m speclab virtual`"

Key = tuple[str, str]  # a line's cell and stat


@dataclass(frozen=True)
class VirtualNumber:
    """A virtual number, and how its cell was settled."""

    number: Number
    gamma: int | None
    c: float
    how: str
    settings: Mapping[str, str]


def file() -> Path:
    return paths.DATA / "virtual.csv"


def keys_of(cell: TableCell) -> list[Key]:
    """The keys of the lines that a table's cell reads."""
    stat = "speedup" if cell.stat in IF_BOUND else cell.stat
    stats = [_stat_key(stat, cell.scaled_tokens)]
    if is_speedup(stat):
        stats.append(DEVICE_SECONDS)
    return [(cell_id(cell.spec), each) for each in stats]


def _stat_key(stat: str, scaled_tokens: int) -> str:
    return f"{stat}@{scaled_tokens}" if scaled_tokens else stat


@cache
def cell_id(spec: Spec) -> str:
    """A hash of a cell's request; it stays the same if a spec gets more fields."""
    given = spec.model_dump(exclude_defaults=True) | {"kind": spec.kind}
    asked = {name: given[name] for name in HASHED if name in given}
    text = json.dumps(asked, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


# -- the file --------------------------------------------------------------------------
def read() -> dict[Key, VirtualNumber]:
    """All numbers by cell and stat; none if the file is missing.

    Raises BadValue naming the file and the damaged line.
    """
    return (
        {} if not file().is_file() else dict(_read(file(), file().stat().st_mtime_ns))
    )


@cache
def _read(path: Path, version: int) -> dict[Key, VirtualNumber]:
    found = {}
    reader = csv.DictReader(io.StringIO(path.read_text("utf-8")))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise BadValue(
            f"{path} has other columns than {', '.join(COLUMNS)}: {RECOMPUTE}"
        )
    for line in reader:
        try:
            found[line["cell"], line["stat"]] = number_in(line)
        except (ValueError, TypeError, KeyError) as error:
            raise BadValue(
                f"{path}, line {reader.line_num}: {error}; {RECOMPUTE}"
            ) from error
    return found


def number_in(line: dict[str, str]) -> VirtualNumber:
    """The number in a line. Raises ValueError or KeyError if the line is damaged."""
    if None in line.values():
        raise ValueError("it is cut off")
    texts = line["without"].split()
    without = {f"part {part}": float(text) for part, text in enumerate(texts)}
    stat = line["stat"].partition("@")[0]
    number = Number(
        float(line["value"]), without, int(line["n"]), signed=stat in SIGNED
    )
    settings = dict(pair.split("=", 1) for pair in line["settings"].split())
    gamma = int(line["gamma"]) if line["gamma"] else None
    return VirtualNumber(number, gamma, float(line["c"]), line["how"], settings)


def texts_of(cell: TableCell, runs: CellRuns) -> dict[Key, dict[str, str]]:
    """The lines for a cell that was run."""
    lines = {}
    for key in keys_of(cell):
        stat, _, scaled = key[1].partition("@")
        number = number_of(stat, runs, int(scaled or 0))
        settings = " ".join(f"{name}={value}" for name, value in runs.settings.items())
        lines[key] = {
            "cell": key[0],
            "stat": key[1],
            "value": f"{number.value:.9g}",
            "n": str(number.n),
            "without": " ".join(f"{value:.9g}" for value in number.without.values()),
            "gamma": "" if runs.gamma is None else str(runs.gamma),
            "c": f"{runs.c:.6g}",
            "how": runs.how,
            "settings": settings,
            "name": cell.spec.name,
        }
    return lines


def read_texts() -> dict[Key, dict[str, str]]:
    """The file's raw lines; none if it is missing or has other columns."""
    if not file().is_file():
        return {}
    reader = csv.DictReader(io.StringIO(file().read_text("utf-8")))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        return {}
    return {(line["cell"], line["stat"]): line for line in reader}


def write(lines: Iterable[dict[str, str]]) -> None:
    """Writes the file atomically, sorted by name."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(lines, key=lambda line: (line["name"], line["stat"])))
    write_atomically(file(), out.getvalue())
