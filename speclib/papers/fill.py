"""Filling a table: what to run for each cell, and the rows that paper, clock and machine give.

Kinds stay apart: a cell has one row per kind, never a blend. Knows no file format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from math import ceil, isnan
from typing import NamedTuple

import numpy as np
import pandas as pd

from speclib.data.pairs import load_pair
from speclib.experiment import machine
from speclib.experiment.run_cells import CellsFailed, run_all
from speclib.experiment.spec import CellResult, Profile, Spec
from speclib.methods import parameters, takes_gamma
from speclib.progress import Progress

from . import pearl_figures as items
from . import statistics as quantities
from .ledger import ClaimRow, LedgerRow
from .rows import assemble
from .schema import Paper, Table

KINDS = ("paper", "virtual", "emulated", "measured")
RUN = KINDS[1:]
NEEDS = {
    "virtual": ("latency", "alpha"),
    "emulated": ("latency", "alpha"),
    "measured": ("pair", "task"),
}
COMPARABLE = (
    "x",
    "tokens",
    "runs",
)  # units in which another machine's value can meet print


class Wanted(NamedTuple):
    """A cell to run: where it stands, what to run, which statistic to read.

    ``tokens``: what counts are scaled to; ``calibrates``: "calibration" if the printed cell set
    this run's alpha or clock, with what of it; else empty.
    """

    row: str
    column: str
    kind: str
    spec: Spec
    stat: str
    metric: str
    unit: str
    tokens: int = 0
    calibrates: str = ""


@dataclass
class Filled:
    """A table with everything known of it. ``values``: kind -> (row, column) -> number;
    ``runs``: (row, column, kind) -> CellResult; ``samples``: the same -> bootstrap resamples, comparable
    one by one; ``figure``: an items.Replay (table-9, figure-3), items.Series (figure-2b) or Trace
    (figure-2a); ``errors``: why by name of the cell that failed."""

    table: Table
    profile: Profile
    rows: list[LedgerRow] = field(default_factory=list)
    claims: list[ClaimRow] = field(default_factory=list)
    values: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    runs: dict[tuple[str, str, str], CellResult] = field(default_factory=dict)
    samples: dict[tuple[str, str, str], np.ndarray | None] = field(default_factory=dict)
    figure: object = None
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(k for k in KINDS if self.values.get(k))

    def add(
        self,
        row,
        column,
        metric,
        unit,
        kind,
        setup,
        value,
        low=None,
        high=None,
        n=None,
        source="",
        note="",
        show=True,
    ) -> None:
        """Adds a row; a value that is undefined (a run length without a rejection) is empty."""
        if value is not None and isnan(value):
            value, note = None, "; ".join(filter(None, ["undefined", note]))
        self.rows.append(
            LedgerRow(
                self.table.paper.key,
                self.table.item,
                row,
                column,
                metric,
                unit,
                kind,
                setup,
                value,
                low,
                high,
                n,
                source,
                note,
            )
        )
        if show and value is not None:
            self.values.setdefault(kind, {})[row, column] = value

    def error(self, row: str, column: str, kind: str = "virtual") -> float | None:
        """Relative error against print; None where either number is missing."""
        printed, ours = (
            self.values.get(k, {}).get((row, column)) for k in ("paper", kind)
        )
        return None if not printed or ours is None else ours / printed - 1

    def frame(self) -> pd.DataFrame:
        """Rows and columns as printed; under each column one per kind, and the errors against
        print: ``error`` (of virtual), ``error emulated``; where units allow, ``error measured``."""
        data = {}
        for column in self.table.column_labels:
            for kind in self.kinds:
                data[column, kind] = [
                    self.values[kind].get((r, column)) for r in self._labels
                ]
                if (
                    kind != "paper"
                    and "paper" in self.kinds
                    and (kind != "measured" or self.table.unit in COMPARABLE)
                ):
                    name = "error" if kind == "virtual" else f"error {kind}"
                    data[column, name] = [
                        self.error(r, column, kind) for r in self._labels
                    ]
        index = pd.Index(self._labels, name=self.table.rows)
        frame = pd.DataFrame(list(data.values()), columns=index, dtype=float).T
        frame.columns = pd.MultiIndex.from_tuples(
            data, names=[self.table.columns_are, "kind"]
        )
        return frame.dropna(axis=1, how="all")

    @property
    def _labels(self) -> list[str]:
        extra = [r for cells in self.values.values() for r, _ in cells]
        return list(dict.fromkeys([*self.table.row_labels, *extra]))


def wanted(table: Table, profile: Profile, kinds: Iterable[str] = RUN) -> list[Wanted]:
    """The cells to run for ``table``, of those ``kinds`` that paper.toml's [fill] gives it."""
    kinds = [k for k in kinds if table.paper.fills(table.item, k)]
    found = []
    for (row, column), kind in product(_places(table), kinds):
        s = table.setting(row, column, kind)
        if "method" not in s or "mean_of" in s or "script" in s:
            continue
        if all(n in s for n in NEEDS[kind]) and _runs(kind, s):
            found.append(_wanted(table, row, column, s, kind, profile))
    return found


def _runs(kind: str, s: dict) -> bool:
    """Whether a cell is run: measured, if this machine computes its dtype; else, if not drawn."""
    if kind != "measured":
        return s.get("stat") not in items.DRAWN
    place = load_pair(s["pair"]).place if "dtype" in s else None
    return place is None or machine.computes(s["dtype"], place.draft + place.target)


def _places(table: Table) -> Iterable[tuple[str, str]]:
    """Printed cells, and those in rows or columns that print none: the engine's own."""
    rows, columns = {r for r, _, _ in table.cells}, {c for _, c, _ in table.cells}
    for row in table.row_labels or ("",):
        for column in table.column_labels:
            if (
                table.printed(row, column) is not None
                or row not in rows
                or column not in columns
            ):
                yield row, column


def _wanted(
    table: Table, row: str, column: str, s: dict, kind: str, profile: Profile
) -> Wanted:
    accounting = s.get("accounting", "committed")
    stat = quantities.accounted(s.get("stat") or s["metric"], accounting)
    gamma = s["gamma"] if takes_gamma(s["method"]) else None
    settings = tuple(
        (n, s[n]) for n in parameters(s["method"]) if n in s and n != "gamma"
    )
    common = {
        "kind": kind,
        "method": s["method"],
        "gamma": gamma,
        "settings": settings,
        "cancel": s.get("cancel"),
    }
    longest = int(s.get("max_new_tokens", profile.virtual_tokens))
    if kind == "measured":
        spec = Spec(
            **common,
            pair=s["pair"],
            task=s["task"],
            tokens=s.get("tokens") or min(longest, profile.tokens),
            requests=max(1, round(profile.prompts * s.get("share", 1))),
            sweep=profile.sweep_prompts,
            dtype=s.get("dtype", "auto"),
            length=s.get("length"),
            temperature=s.get("temperature", 0.0),
            ignore_eos=s.get("ignore_eos", accounting == "as_published"),
        )
    else:
        tokens = min(longest, profile.virtual_tokens)
        requests = ceil(profile.virtual_tokens * s.get("sample", 1) / tokens)
        if kind == "emulated":
            tokens = min(longest, profile.emulated_tokens)
            requests = profile.emulated_requests
        over = (s["over"], s["gamma"]) if "over" in s else None
        spec = Spec(
            **common,
            latency=s["latency"],
            alpha=table.paper.alpha(s["alpha"]),
            tokens=tokens,
            requests=requests,
            over=over,
            per_token=s.get("per_token", 0.0),
            doubt=s.get("doubt", 0.0),
        )
    sets = _sets(table, row, column, s) if kind != "measured" else ""
    return Wanted(
        row,
        column,
        kind,
        spec,
        stat,
        s["metric"],
        s["unit"],
        int(s.get("prompts", 0)) * longest,
        sets,
    )


def _sets(table: Table, row: str, column: str, s: dict) -> str:
    """What a printed cell set of its own run."""
    how = table.paper.calibration.get(s.get("alpha"))
    role = how.role(table.item, row, column) if how else ""
    return role or (
        "calibration of the clock" if table.makes_clock(row, column) else ""
    )


def fill(
    table: Table,
    profile: Profile,
    progress: Progress | None = None,
    kinds: Iterable[str] = RUN,
) -> Filled:
    """Everything known of one table, from the cache where it has it."""
    return fill_all(table.paper, profile, [table.item], progress, kinds)[table.item]


def fill_all(
    paper: Paper,
    profile: Profile,
    only: Iterable[str] | None = None,
    progress: Progress | None = None,
    kinds: Iterable[str] = RUN,
) -> dict[str, Filled]:
    """All tables of a paper (or ``only`` some), their cells run together: item -> Filled.

    A cell that fails leaves the rest standing and is named in its table's ``errors``."""
    chosen = {item: paper.table(item) for item in (only or paper.tables)}
    cells = {item: wanted(table, profile, kinds) for item, table in chosen.items()}
    try:
        runs, errors = (
            run_all([w.spec for ws in cells.values() for w in ws], progress),
            {},
        )
    except CellsFailed as failure:
        runs, errors = failure.results, failure.errors
    filled = {item: Filled(table, profile) for item, table in chosen.items()}
    for item, one in filled.items():
        assemble(one, cells[item], runs, errors, kinds)
    return filled
