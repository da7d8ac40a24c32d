"""Values: numbers measured for a pair and not for a method, such as state similarities.

A line contains the value for one text or repeat; the mean and its interval are computed
when the lines are read. Values are stored next to the rows, in `<machine>-values.csv`
(see ``rows``).
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
    settings  the measurement's settings, as "name=value name=value"
    at        what the number refers to, for example "q, layer 3" or "128 tokens"
    n         the index of the text or the repeat
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

    ``folder``: the folder that contains the file; None: the cache.

    Raises SpeclibError with the file's name if it cannot be written.
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

    Raises BadValue with the file's name and the line's number if a line is damaged.
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
        """What is measured, the pair and the settings, which all these values share."""
        settings = " ".join(f"{name}={value}" for name, value in self.settings)
        return self.what, self.pair, settings


class Found(NamedTuple):
    """One machine's values: a list for each ``at``, ordered by ``n``."""

    machine: str
    date: str
    by_place: dict[str, list[float]]


def values_of(step: ValuesStep, values: Iterable[Value], machine: str) -> Found | None:
    """The requested values from ``machine``, or if it has none, the latest machine's.

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
