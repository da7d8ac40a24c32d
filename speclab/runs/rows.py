"""Rows: every timed run and its results, as plain CSV.

A run is one prompt decoded with one method. Its row (``Row``) records what was run and
where, and the resulting counts and times (``traces.counts.Counts``). The row is
appended to ``.cache/runs/<machine>.csv`` when the run ends, so if a measurement is
interrupted, only the current run is lost. Published files are
``data/runs/<machine>.csv``.

The runs in a ``group`` decoded the same prompt one after the other: plain decoding, and
each of the methods. A run is only compared with plain decoding in its own group.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from speclab.traces.counts import Counts
from speclib import paths
from speclib.errors import BadValue

from .append_line import append_line
from .spec import Spec, ToySpec

COUNTS = tuple(f.name for f in fields(Counts) if f.name != "requests")
TIMED_KINDS = ("emulated", "measured")
MOST_USED_BY_OTHERS = 0.05  # share of the machine; above it, a run counts as busy
RESTORE = "restore the file, or remove the line"


class RowKey(NamedTuple):
    """The fields that two runs share if they differ only in their prompts.

    kind        "measured" or "emulated"
    on          the pair; for an emulated run, the latency file
    rate        for an emulated run, the acceptance rate of its toy models
    task        the set of prompts
    dtype       the models' dtype
    limit       the number of tokens requested
    conditions  other settings of the request, as "name=value name=value"
    method, window, settings
                as requested: the window may be "auto" or "best"
    """

    kind: str
    on: str
    rate: str
    task: str
    dtype: str
    limit: int
    conditions: str
    method: str
    window: str
    settings: str


@dataclass(frozen=True)
class Row:
    """One run.

    machine     see ``this_machine``
    key         what was run
    group       identifies its group of runs: when the group began, and the prompt
    prompt      the prompt's index in the task; ``turn``: the run's place in its group
    gamma       the window used; ``how``: how it was chosen, unless given as a number
    c           the time of a target pass over the time of a draft pass, in this world
    draft       the draft's backend, and its size if it was fitted
    stats       counts and times
    others      the share of the machine that other programs used during the run
    differs     the first position where the output differs from plain decoding's; None
                if it never does
    date        when it ended; ``commit``: the code's commit
    """

    machine: str
    key: RowKey
    group: str
    prompt: int
    turn: int
    gamma: int | None
    how: str
    c: float
    draft: str
    stats: Counts
    others: float
    differs: int | None
    date: str
    commit: str

    @property
    def is_busy(self) -> bool:
        """Whether other programs kept the machine busy during the run."""
        return self.others > MOST_USED_BY_OTHERS


COLUMNS = (
    "machine",
    *RowKey._fields,
    "group",
    "prompt",
    "turn",
    "gamma",
    "how",
    "c",
    "draft",
    *COUNTS,
    "others",
    "differs",
    "date",
    "commit",
)


# The fields of a spec that make up a row's conditions, in this order.
CONDITIONS = (
    "length",
    "temperature",
    "ignore_eos",
    "per_token",
    "cancel",
    "seed",
    "with_tail",
)


@cache
def key_of(spec: Spec) -> RowKey:
    """The key shared by all rows of a cell."""
    spec_values = spec.model_dump()
    conditions = {
        name: spec_values[name] for name in CONDITIONS if spec_values.get(name)
    }
    return RowKey(
        kind=spec.kind,
        on=spec_values.get("pair") or spec_values["latency"],
        rate=f"{spec.alpha:g}" if isinstance(spec, ToySpec) else "",
        task=spec_values.get("task", ""),
        dtype=spec_values.get("dtype", ""),
        limit=spec.tokens,
        conditions=_in_words(conditions),
        method=spec.method,
        window="" if spec.gamma is None else str(spec.gamma),
        settings=_in_words(dict(spec.settings)),
    )


def _in_words(settings: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


# -- files -----------------------------------------------------------------------------
def append(row: Row) -> None:
    """Appends a row to its machine's file in the cache.

    Raises SpeclibError with the file's name if it cannot be written.
    """
    path = paths.CACHE / "runs" / f"{row.machine}.csv"
    append_line(path, _to_csv(_texts_of(row)), header=_to_csv(COLUMNS))


def write(rows: Iterable[Row]) -> str:
    """The rows as the text of a CSV file."""
    return "".join([_to_csv(COLUMNS), *(_to_csv(_texts_of(row)) for row in rows)])


def read(path: Path) -> list[Row]:
    """The rows in a file.

    Ignores an incomplete header, and an incomplete last line, which a run leaves if it
    is killed while writing. Raises BadValue, with the file's name, if the columns are
    those of another version; and with the line's number, if a line is damaged,
    duplicated or dated in the future.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(f"cannot read {path}: {error}; {RESTORE}") from error
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return []
    reader = csv.reader(io.StringIO(whole))
    header = tuple(next(reader))
    if header != COLUMNS:
        raise BadValue(
            f"{path} has other columns than this version's rows: it lacks "
            f"{sorted(set(COLUMNS) - set(header))} and has "
            f"{sorted(set(header) - set(COLUMNS))} instead; measure again, or move "
            "the file away"
        )
    rows: list[Row] = []
    line_of: dict[object, int] = {}
    for texts in reader:
        line = reader.line_num
        try:
            row = _row_of(texts)
            same = row.machine, row.key, row.group
            if same in line_of:
                raise ValueError(f"it repeats the run of line {line_of[same]}")
        except ValueError as error:
            raise BadValue(f"{path}, line {line}: {error}; {RESTORE}") from error
        line_of[same] = line
        rows.append(row)
    return rows


def read_all() -> list[Row]:
    """All rows in ``data/runs`` and in the cache; a run in both counts once."""
    rows: dict[object, Row] = {}
    for folder in (paths.DATA / "runs", paths.CACHE / "runs"):
        for path in sorted(folder.glob("*.csv")):
            if path.name.endswith("-values.csv"):
                continue  # see ``values``
            for row in read(path):
                rows[row.machine, row.key, row.group] = row
    return list(rows.values())


def _to_csv(texts: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(texts)
    return line.getvalue()


def _texts_of(row: Row) -> list[str]:
    values = {
        **{f.name: getattr(row, f.name) for f in fields(row)},
        **row.key._asdict(),
        **asdict(row.stats),
    }
    return [_text(values[column]) for column in COLUMNS]


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row_of(texts: list[str]) -> Row:
    """The row in a line. Raises ValueError that names an impossible value."""
    if len(texts) != len(COLUMNS):
        raise ValueError(f"{len(texts)} values, expected {len(COLUMNS)}")
    by_name = dict(zip(COLUMNS, texts, strict=True))
    counts: dict[str, Any] = {name: _number(name, by_name[name]) for name in COUNTS}
    key: dict[str, Any] = {name: by_name[name] for name in RowKey._fields}
    row = Row(
        machine=by_name["machine"],
        key=RowKey(**{**key, "limit": _whole("limit", key["limit"])}),
        group=by_name["group"],
        prompt=_whole("prompt", by_name["prompt"]),
        turn=_whole("turn", by_name["turn"]),
        gamma=_whole("gamma", by_name["gamma"]) if by_name["gamma"] else None,
        how=by_name["how"],
        c=_number("c", by_name["c"]),
        draft=by_name["draft"],
        stats=Counts(requests=1, **counts),
        others=_number("others", by_name["others"]),
        differs=_whole("differs", by_name["differs"]) if by_name["differs"] else None,
        date=by_name["date"],
        commit=by_name["commit"],
    )
    _check(row)
    return row


def _check(row: Row) -> None:
    if row.key.kind not in TIMED_KINDS:
        raise ValueError(f"kind is {row.key.kind!r}: a row is emulated or measured")
    if row.stats.seconds <= 0 or row.stats.tokens < 1:
        raise ValueError(
            f"{row.stats.tokens:g} tokens in {row.stats.seconds:g} s: impossible"
        )
    ended = datetime.fromisoformat(row.date)
    if ended > datetime.now() + timedelta(days=1):
        raise ValueError(f"date is {row.date}, which is in the future")


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value < 0:
        raise ValueError(f"{name} is {text!r}: it must be a number, at least 0")
    return int(value) if value == int(value) and "." not in text else value


def _whole(name: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{name} is {text!r}: it must be a whole number")
    return int(text)


# -- the runs of a cell ----------------------------------------------------------------
@dataclass
class CellRuns:
    """The counts of a cell's requests and of their baselines, and how they were run.

    stats, baseline
              counts of each request, for the method and for its baseline
    labels    a label per request, shared with other methods' runs on the same prompt
    gamma     the window used; ``how``: how it was chosen
    c         the time of a target pass over the time of a draft pass
    machine   where it was timed; "" for the virtual clock
    date      the date of its newest run
    draft     the draft's backend
    is_busy   whether other programs kept the machine busy during any run that counts
    differs   the number of outputs that differ from plain decoding's
    settings  settings for which the cell offers a choice, with the values chosen
    """

    spec: Spec
    stats: list[Counts]
    baseline: list[Counts]
    labels: list[str]
    gamma: int | None
    c: float
    how: str = ""
    machine: str = ""
    date: str = ""
    draft: str = ""
    is_busy: bool = False
    differs: int = 0
    settings: dict[str, Any] = field(default_factory=dict)


class Rows:
    """Rows, looked up by cell and machine."""

    def __init__(self, rows: Iterable[Row]):
        self._by_key: dict[tuple[str, RowKey], list[Row]] = defaultdict(list)
        for row in rows:
            self._by_key[row.machine, row.key].append(row)
        self.machines = sorted({machine for machine, _ in self._by_key})

    def of(self, spec: Spec, machine: str) -> CellRuns | None:
        """A cell's runs on a machine, each with its baseline; None if there are none.

        If a prompt was run more than once, its newest group counts. Busy runs count
        only if there are fewer than two quiet runs.
        """
        plain = {row.group: row for row in self._rows(spec.baseline, machine)}
        pairs: dict[int, tuple[Row, Row]] = {}
        for row in sorted(self._rows(spec, machine), key=lambda row: row.date):
            if row.group in plain:
                pairs[row.prompt] = (row, plain[row.group])
        if not pairs:
            return None
        in_order = [pairs[prompt] for prompt in sorted(pairs)]
        quiet = [p for p in in_order if not (p[0].is_busy or p[1].is_busy)]
        counted = quiet if len(quiet) > 1 else in_order
        newest, _ = max(counted, key=lambda pair: pair[0].date)
        return CellRuns(
            spec=spec,
            stats=[own.stats for own, _ in counted],
            baseline=[base.stats for _, base in counted],
            labels=[f"{own.key.task}/{own.prompt}" for own, _ in counted],
            gamma=newest.gamma,
            c=newest.c,
            how=newest.how,
            machine=machine,
            date=newest.date,
            draft=newest.draft,
            is_busy=counted is in_order and len(quiet) < len(in_order),
            differs=sum(own.differs is not None for own, _ in counted),
        )

    def _rows(self, spec: Spec, machine: str) -> list[Row]:
        return self._by_key.get((machine, key_of(spec)), [])

    def prompts_done(self, spec: Spec, machine: str) -> int:
        """How many of a cell's prompts have a row from a machine."""
        return len({row.prompt for row in self._rows(spec, machine)})
