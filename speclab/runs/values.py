"""Values: measured numbers of a pair, not of a method, such as state similarities.

A line has the value for one text or repeat; the reader computes the mean and its
interval. Values are stored next to the rows, in `<machine>-values.csv` (see ``rows``).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from speclib import paths
from speclib.errors import BadValue

from .append_line import append_line


@dataclass(frozen=True)
class Value:
    """One number.

    machine   see ``this_machine``
    what      what is measured, for example "layer similarity"
    settings  of the measurement, as "name=value name=value"
    at        what the number refers to, for example "q, layer 3" or "128 tokens"
    n         the number of the text or the repeat
    date      when it was measured; ``commit``: the code's commit
    """

    machine: str
    what: str
    pair: str
    settings: str
    at: str
    n: int
    value: float
    date: str
    commit: str


COLUMNS = tuple(f.name for f in fields(Value))


def append_values(values: Iterable[Value], folder: Path | None = None) -> None:
    """Appends a machine's values to its file, all of them or none.

    ``folder``: the file's folder; None: the cache.

    Raises SpeclibError naming the file if it cannot be written.
    """
    lines = io.StringIO()
    name = ""
    for value in values:
        name = f"{value.machine}-values.csv"
        csv.writer(lines, lineterminator="\n").writerow(astuple(value))
    if name:
        header = ",".join(COLUMNS) + "\n"
        append_line((folder or paths.CACHE / "runs") / name, lines.getvalue(), header)


def read_values(path: Path) -> Iterator[Value]:
    """The values in a file, except for an incomplete last line left by a killed run.

    Raises BadValue naming the file and the damaged line.
    """
    text = path.read_text("utf-8")
    reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    for line in reader:
        try:
            values: dict[str, Any] = dict(line)
            values |= {"n": int(line["n"]), "value": float(line["value"])}
            yield Value(**values)
        except (ValueError, TypeError, KeyError) as error:
            raise BadValue(
                f"{path}, line {reader.line_num}: {error}; restore the file, or remove "
                "the line"
            ) from error


def read_all_values() -> list[Value]:
    """All values in ``data/runs`` and in the cache, without duplicates."""
    values: dict[Value, None] = {}
    for folder in (paths.DATA / "runs", paths.CACHE / "runs"):
        for path in sorted(folder.glob("*-values.csv")):
            values |= dict.fromkeys(read_values(path))
    return list(values)


class ValuesStep(NamedTuple):
    """A request for values from ``n`` texts or repeats.

    ``settings``: (name, value) pairs, the arguments of the measuring function.
    """

    what: str
    pair: str
    settings: tuple[tuple[str, Any], ...]
    n: int

    @property
    def name(self) -> tuple[str, str, str]:
        """What all its values share: what is measured, the pair and the settings."""
        settings = " ".join(f"{name}={value}" for name, value in self.settings)
        return self.what, self.pair, settings


class Found(NamedTuple):
    """One machine's values: a list for each ``at``, ordered by ``n``."""

    machine: str
    date: str
    by_place: dict[str, list[float]]


def values_of(step: ValuesStep, values: Iterable[Value], machine: str) -> Found | None:
    """The requested values from ``machine``, or from the latest if it has none.

    None if no machine has any.
    """
    own = [v for v in values if (v.what, v.pair, v.settings) == step.name]
    if not own:
        return None
    newest = max(own, key=lambda value: value.date)
    is_known = any(value.machine == machine for value in own)
    shown = machine if is_known else newest.machine
    by_place: dict[str, list[float]] = {}
    for value in sorted(own, key=lambda value: value.n):
        if value.machine == shown and value.n < step.n:
            by_place.setdefault(value.at, []).append(value.value)
    return Found(shown, newest.date, by_place)
