"""What a paper prints, as values: tables with units, errata, claims, and the settings of each cell.

The format of the files under ``data/papers`` is described at the end of each ``paper.toml``.
Reading them is ``papers.load_paper``. Knows no run and no clock.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from speclib.errors import SpeclibError
from speclib.methods import METHODS, parameters

from .calibration import Calibration

SETTINGS = {
    *(
        "method latency alpha pair task max_new_tokens metric unit decimals stat mean_of "
        "printed_c prompts script c tokens dtype share over cancel per_token books rule "
        "about_rule sample accounting doubt ignore_eos length temperature layers "
        "state"
    ).split(),
    *(name for method in METHODS for name in parameters(method)),
}
MethodSetting = (
    bool | str | int | float | tuple[str | int | float, ...]
)  # a tuple: the fastest of
Settings = dict[
    str, MethodSetting | dict[str, MethodSetting]
]  # a dict: those of one kind


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Claim(_Strict):
    """A sentence that numbers can hold or break; the fields by ``kind`` are in paper.toml."""

    id: str
    kind: Literal["order", "argmax", "ratio", "range", "equal"]
    text: str
    source: str
    kinds: tuple[str, ...] = ("paper", "virtual", "emulated", "measured")
    printed: Literal["yes", "no", "n/a"] = "n/a"
    over: Literal["row", "column", "rows", "columns"] | None = None
    row: str | tuple[str, ...] | None = None
    column: str | tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    of: str | tuple[str, ...] | None = None
    by: str | tuple[str, ...] | None = None
    reduce: Literal["max", "min"] | None = None
    expected: Any = None
    within: float = 0.0
    low: float | None = None
    high: float | str | None = None
    decimals: int | None = None


class Erratum(_Strict):
    cells: tuple[tuple[str, str], ...]
    kind: Literal["text", "arithmetic", "conflict", "ceiling", "prose"]
    note: str
    computed: float | None = None
    of: tuple[str, str, str] | None = None
    by: tuple[str, str, str] | None = None
    beside: bool = False


class Step(_Strict):
    """One step of a printed run, as tokens; ``start`` in draft passes."""

    step: int
    mode: str
    block: tuple[str, ...]
    draft: tuple[str, ...]
    accepted: tuple[str, ...]
    committed: tuple[str, ...]
    rejected: str | None = None
    instead: str | None = None
    start: float | None = None


class Beside(_Strict):
    """Second numbers that cells print, in brackets."""

    metric: str
    unit: str
    decimals: int
    cells: tuple[tuple[str, str, float], ...]


class Table(_Strict):
    """One table, figure or theorem: what was printed, and what to run for it."""

    item: str
    title: str
    about: str
    metric: str
    unit: str
    decimals: int
    rows: str
    columns_are: str
    chart: str | None = None  # a name in views.charts.choose.CHARTS; None: no figure
    cells: tuple[tuple[str, str, float], ...]
    printed_unit: str | None = None
    beside: Beside | None = None
    lost: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    clock_from: tuple[tuple[str, str], ...] = ()
    settings: Settings = {}
    row: dict[str, Settings] = {}
    column: dict[str, Settings] = {}
    claims: tuple[Claim, ...] = ()
    errata: tuple[Erratum, ...] = ()
    steps: tuple[Step, ...] = ()
    output: tuple[str, ...] = ()
    prompt: str | None = None
    formula: str | None = None
    from_formula: bool = False
    _paper: Paper = PrivateAttr()

    @property
    def paper(self) -> Paper:
        return self._paper

    @property
    def row_labels(self) -> tuple[str, ...]:
        """In the order of [row...] where that names all; else as printed, then the engine's own."""
        return _ordered([r for r, _, _ in self.cells], self.row)

    @property
    def column_labels(self) -> tuple[str, ...]:
        return _ordered([c for _, c, _ in self.cells], self.column)

    def printed(self, row: str, column: str) -> float | None:
        return next((v for r, c, v in self.cells if (r, c) == (row, column)), None)

    def setting(
        self, row: str, column: str, kind: str = ""
    ) -> dict[str, MethodSetting]:
        """All settings of a cell: the table's, its column's, its row's, in each of them those of
        its ``kind`` last; "{name}" filled in."""
        merged = {"metric": self.metric, "unit": self.unit, "decimals": self.decimals}
        for own in (self.settings, self.column.get(column, {}), self.row.get(row, {})):
            merged |= {
                k: v for k, v in own.items() if not isinstance(v, dict)
            } | own.get(kind, {})
        return {k: _substitute(v, merged) for k, v in merged.items()}

    def makes_clock(self, row: str, column: str) -> bool:
        """Whether a latency file was made from this printed cell."""
        return any(r in (row, "*") and c in (column, "*") for r, c in self.clock_from)


def _ordered(printed: list[str], own: dict) -> tuple[str, ...]:
    return tuple(own if set(printed) <= set(own) else dict.fromkeys([*printed, *own]))


class Paper(_Strict):
    """A paper's data: ``tables`` by item in the order of the print, calibrations by name."""

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    url: str
    arxiv: str | None = None
    about: str = ""
    facts: dict[str, Any] = Field(default_factory=dict)
    calibration: dict[str, Calibration] = {}
    tables: dict[str, Table] = {}

    def table(self, item: str) -> Table:
        if item not in self.tables:
            raise SpeclibError(
                f"paper {self.key!r} has no {item!r}; it has: {', '.join(self.tables)}"
            )
        return self.tables[item]

    def printed(self, item: str, row: str, column: str) -> float | None:
        return self.table(item).printed(row, column)

    def fills(self, item: str, kind: str) -> bool:
        """Whether an engine fills an item with numbers of ``kind``."""
        return item in self.facts.get("fill", {}).get(kind, ())

    def alpha(self, name: str | float) -> float:
        """The acceptance rate of a calibration entry, solved from its printed cell (six digits)."""
        if not isinstance(name, str):
            return float(name)
        file = f"data/papers/{self.key}/calibration.toml"
        if name not in self.calibration:
            raise SpeclibError(
                f"{file} has no entry {name!r}; it has: {', '.join(self.calibration)}"
            )
        return self.calibration[name].alpha(self.printed, f"{file}, entry {name!r}")


def _substitute(value, settings: dict):
    """ "{name}" alone is the setting itself; inside a longer string it is its text."""
    if not isinstance(value, str) or "{" not in value:
        return value
    inner = value[1:-1]
    try:
        return settings[inner] if inner in settings else value.format(**settings)
    except KeyError as error:
        raise SpeclibError(
            f"a setting refers to {value!r}, and there is no setting {error}: give "
            "it to the cell's row, column or table"
        ) from error
