"""What a paper prints, as values: tables with units, errata, claims and settings.

The format of the files under ``data/papers`` is described at the top of
``data/papers/pearl/table-1.toml``. ``load.load_paper`` reads them. Knows no run and no
clock.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PrivateAttr,
)

from speclib.errors import BadValue, unknown_name
from speclib.methods import METHODS, parameters

from .calibration import Calibration

ENGINE_KINDS = ("virtual", "emulated", "measured")
KINDS = ("paper", *ENGINE_KINDS)  # a cell has one number per kind, never a blend

# Everything that a table, a row or a column may set, besides what its method can be
# told.
TABLE_SETTINGS = (
    "method latency alpha pair task max_new_tokens metric unit decimals stat mean_of "
    "quotient_of printed_c prompts script c tokens dtype share over cancel per_token "
    "books rule about_rule sample accounting doubt ignore_eos length temperature "
    "layers state batch"
)


def _known_settings() -> frozenset[str]:
    names = set(TABLE_SETTINGS.split())
    for method in METHODS:
        names.update(parameters(method))
    return frozenset(names)


SETTINGS = _known_settings()

# A tuple is a choice: the cell is run with each, and the fastest one counts.
SettingValue = bool | str | int | float | tuple[str | int | float, ...]

# A dict holds the settings of one kind of number, by the name of the kind.
Settings = dict[str, SettingValue | dict[str, SettingValue]]

# From the unit of the data to that of the print.
SCALES: dict[tuple[str, str | None], float] = {("s", "ms"): 1000.0}

CellName = tuple[str, str]  # row and column, as printed
PrintedCell = tuple[str, str, FiniteFloat]  # row, column and value


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Claim(_Strict):
    """A sentence that numbers can hold or break.

    ``kinds`` are the kinds of number it is judged on, ``printed`` says whether the
    print bears it out. The other fields depend on ``kind``: see
    ``data/papers/pearl/table-1.toml``.
    """

    id: str
    kind: Literal["order", "argmax", "ratio", "range", "equal"]
    text: str
    source: str
    kinds: tuple[str, ...] = KINDS
    printed: Literal["yes", "no", "n/a"] = "n/a"
    over: Literal["row", "column", "rows", "columns"] | None = None
    row: str | tuple[str, ...] | None = None
    column: str | tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    of: str | tuple[str, ...] | None = None
    by: str | tuple[str, ...] | None = None
    reduce: Literal["max", "min"] | None = None
    expected: Any = None
    within: FiniteFloat = 0.0
    low: FiniteFloat | None = None
    high: FiniteFloat | str | None = None
    decimals: int | None = None


class Erratum(_Strict):
    """What is wrong with printed ``cells`` and, if it can be computed, what is right.

    ``beside`` says that the number in brackets is meant, not the cell's own.
    """

    cells: tuple[CellName, ...]
    kind: Literal["text", "arithmetic", "conflict", "ceiling", "prose"]
    note: str
    computed: FiniteFloat | None = None
    of: tuple[str, str, str] | None = None
    by: tuple[str, str, str] | None = None
    beside: bool = False


class Step(_Strict):
    """One step of a printed run, as the texts of its tokens.

    ``start`` is in draft passes. ``block`` is what the round before drafted and left to
    be verified, ``draft`` what this step drafts. ``instead`` is the target's token for
    the ``rejected`` one.
    """

    step: int
    mode: str
    block: tuple[str, ...]
    draft: tuple[str, ...]
    accepted: tuple[str, ...]
    committed: tuple[str, ...]
    rejected: str | None = None
    instead: str | None = None
    start: FiniteFloat | None = None


class Beside(_Strict):
    """The second numbers that cells print in brackets, of a metric of their own."""

    metric: str
    unit: str
    decimals: int
    cells: tuple[PrintedCell, ...]


class MainQuantity(_Strict):
    """The numbers of a table that its page shows first, as its method's gain.

    name      what they are: "PEARL over plain decoding"
    over      "columns": ``of`` and ``by`` are rows, and there is a point per column
    of, by    their labels, as in a claim; each number is ``of``, or ``of`` over ``by``.
              Several ``of`` stand for several models, named before their " / "
    among     a pattern for the labels of points; what its star stands for names them
    against   the label of a baseline, for each ``of``, with which the paper compares,
              and ``against_name`` what it is called
    has_ceiling  whether the cost ratio c is the most that the method can gain
    """

    name: str
    over: Literal["rows", "columns"]
    of: str | tuple[str, ...]
    by: str | None = None
    among: str = "*"
    against: str | tuple[str, ...] | None = None
    against_name: str = ""
    has_ceiling: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its rows, or of its columns."""
        return self.of if isinstance(self.of, tuple) else (self.of,)


class Table(_Strict):
    """One table, figure or theorem: what was printed, and what to run for it.

    item, title          what it is called
    about                what it shows and claims; below that, how it was read and run
    before_you_cite      what to know before one cites its numbers, four at most
    main                 the numbers that its page shows first
    metric, unit         what its numbers are, where a row or column says nothing else
    decimals             of the print, counted in ``printed_unit`` if that differs
    rows, columns_are    what the labels of rows and of columns stand for
    cells, beside        the printed numbers, and second ones in brackets
    lost, absent         cells that our copy of the text, or the paper, lacks
    clock_from           printed cells that a latency file was made from
    settings, row, column  of what is run: for the table, by row and by column label
    claims, errata       sentences to judge, and what is wrong in print
    steps, output, prompt  a run that is printed step by step
    formula, from_formula  a printed formula, and whether the cells are its values
    """

    item: str
    title: str
    about: str
    before_you_cite: tuple[str, ...] = Field(default=(), max_length=4)
    main: MainQuantity | None = None
    metric: str
    unit: str
    decimals: int
    rows: str
    columns_are: str
    chart: str | None = (
        None  # a name in views.charts.table_charts.CHARTS; None: no chart
    )
    cells: tuple[PrintedCell, ...]
    printed_on: str | None = None  # None: in the paper itself
    printed_unit: str | None = None
    beside: Beside | None = None
    lost: tuple[CellName, ...] = ()
    absent: tuple[CellName, ...] = ()
    clock_from: tuple[CellName, ...] = ()
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
        """The paper that this table belongs to."""
        return self._paper

    @property
    def shown_unit(self) -> str:
        """The unit of its numbers on a page; a column of another unit says it."""
        is_known = (self.unit, self.printed_unit) in SCALES
        return str(self.printed_unit) if is_known else self.unit

    def scale(self, unit: str) -> float:
        """What leads from a number in ``unit`` to one as it is printed."""
        return SCALES.get((unit, self.printed_unit), 1.0)

    @property
    def file(self) -> str:
        """The file that holds this table, for errors."""
        return f"data/papers/{self._paper.key}/{self.item}.toml"

    def join(self, paper: Paper) -> None:
        """Makes this a table of ``paper``, to which claims and settings may refer."""
        self._paper = paper

    @property
    def row_labels(self) -> tuple[str, ...]:
        """The rows in the order of [row...] where that names all of them.

        Otherwise they come as printed, then those that only the engine fills.
        """
        return _order_labels([row for row, _, _ in self.cells], self.row)

    @property
    def column_labels(self) -> tuple[str, ...]:
        """The columns, in the order that ``row_labels`` describes for rows."""
        return _order_labels([column for _, column, _ in self.cells], self.column)

    def printed(self, row: str, column: str) -> float | None:
        """The printed number of a cell; None where the paper prints none."""
        for printed_row, printed_column, value in self.cells:
            if (printed_row, printed_column) == (row, column):
                return value
        return None

    def settings_of(
        self, row: str = "", column: str = "", kind: str = ""
    ) -> dict[str, Any]:
        """All settings of a cell, or without labels those of the whole table, by name.

        Every "{name}" in them is filled in.

        The settings of the table come first, then those of the column and of the row,
        later ones winning. In each of them, those of ``kind`` alone win over the
        others.
        """
        merged: dict[str, Any] = {
            "metric": self.metric,
            "unit": self.unit,
            "decimals": self.decimals,
        }
        row_settings = self.row.get(row, {})
        column_settings = self.column.get(column, {})
        for settings in (self.settings, column_settings, row_settings):
            for name, value in settings.items():
                if not isinstance(value, dict):
                    merged[name] = value
            of_this_kind = settings.get(kind, {})
            if isinstance(of_this_kind, dict):
                merged |= of_this_kind
        try:
            return {name: _fill_in(value, merged) for name, value in merged.items()}
        except (LookupError, ValueError, AttributeError) as error:
            raise BadValue(
                f"{self.file}, cell [{row!r}, {column!r}]: a setting refers to "
                f'another as "{{name}}", and it cannot be filled in: {error!r}; give '
                "that setting to the cell's row, column or table"
            ) from error

    def makes_clock(self, row: str, column: str) -> bool:
        """Whether a latency file was made from this printed cell."""
        return matches_any(self.clock_from, row, column)


def matches_any(names: tuple[CellName, ...], row: str, column: str) -> bool:
    """Whether one of ``names`` is this cell; "*" stands for every row or column."""
    for named_row, named_column in names:
        if named_row in (row, "*") and named_column in (column, "*"):
            return True
    return False


def _order_labels(
    printed: list[str], with_settings: dict[str, Settings]
) -> tuple[str, ...]:
    if set(printed) <= set(with_settings):
        return tuple(with_settings)
    return tuple(dict.fromkeys([*printed, *with_settings]))


def _fill_in(value: Any, settings: dict[str, Any]) -> Any:
    """The value with every "{name}" replaced by the setting of that name.

    "{name}" alone is the setting itself, a number if it is one. Inside a longer string
    it is the setting's text.
    """
    if not isinstance(value, str) or "{" not in value:
        return value
    inner_name = value[1:-1]
    if inner_name in settings:
        return settings[inner_name]
    return value.format(**settings)


class Paper(_Strict):
    """A paper's data: its tables in the order of the print, its calibrations by name.

    ``facts`` is everything else that ``paper.toml`` says, by key.
    """

    key: str
    name: str = ""  # of its method, as pages call it; the key without it
    title: str
    authors: tuple[str, ...]
    year: int
    url: str
    arxiv: str | None = None
    about: str = ""
    facts: dict[str, Any] = Field(default_factory=dict)
    calibration: dict[str, Calibration] = {}
    tables: dict[str, Table] = {}

    @property
    def short_name(self) -> str:
        """What its pages call it."""
        return self.name or self.key

    @property
    def address(self) -> str:
        """Where it can be read: on arXiv, or at its address."""
        return f"arXiv:{self.arxiv}" if self.arxiv else self.url

    def table(self, item: str) -> Table:
        """The table of that name; raises UnknownName listing all, if there is none."""
        if item not in self.tables:
            problem = f"paper {self.key!r} has no {item!r}"
            raise unknown_name(problem, item, self.tables)
        return self.tables[item]

    def printed(self, item: str, row: str, column: str) -> float | None:
        """The printed number of a cell of an item; None where the paper prints none."""
        return self.table(item).printed(row, column)

    def fills(self, item: str, kind: str) -> bool:
        """Whether an engine fills an item with numbers of ``kind``."""
        return item in self.facts.get("fill", {}).get(kind, ())

    def alpha(self, name: str | float) -> float:
        """The acceptance rate of a calibration entry, solved from its printed cell.

        It has six digits. A number stands for itself. Raises SpeclibError naming the
        file and the entry, if there is no such entry or no rate gives the printed
        number.
        """
        if not isinstance(name, str):
            return float(name)
        file = f"data/papers/{self.key}/calibration.toml"
        if name not in self.calibration:
            raise unknown_name(f"{file} has no entry {name!r}", name, self.calibration)
        return self.calibration[name].alpha(self.printed, f"{file}, entry {name!r}")
