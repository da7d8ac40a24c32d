"""The classes for what a paper prints: tables with units, errata, claims and settings.

``data/papers/pearl/table-1.toml`` describes the format of the files at its top, and
``load_papers.load_paper`` reads them. This module knows no runs and no clocks.
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
KINDS = ("paper", *ENGINE_KINDS)  # a cell has one number per kind, never a mixture

# The settings of tables, rows and columns, apart from the method's own parameters.
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

# A tuple is a choice: the cell is run with each value, and the fastest one counts.
SettingValue = bool | str | int | float | tuple[str | int | float, ...]

# A dict has the settings for one kind of number, under the name of the kind.
Settings = dict[str, SettingValue | dict[str, SettingValue]]

# Factors from the unit of the data to the printed unit.
SCALES: dict[tuple[str, str | None], float] = {("s", "ms"): 1000.0}

CellName = tuple[str, str]  # row and column, as printed
PrintedCell = tuple[str, str, FiniteFloat]  # row, column and value


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Claim(_Strict):
    """A statement that numbers can confirm or refute.

    ``kinds`` are the kinds of number it is judged on, and ``printed`` says whether the
    printed numbers confirm it. ``unmeasurable`` is why stand-ins cannot judge it. The
    other fields depend on ``kind``: see ``data/papers/pearl/table-1.toml``.
    """

    id: str
    kind: Literal["order", "argmax", "ratio", "range", "equal"]
    text: str
    source: str
    kinds: tuple[str, ...] = KINDS
    unmeasurable: str = ""
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
    """A mistake in printed ``cells``, with the right value if it can be computed.

    ``beside`` means the number in brackets, not the cell's own.
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

    ``start`` is in draft passes. ``block`` has the previous round's drafts that are
    still to be verified, ``draft`` the tokens drafted in this step. The target replaces
    the ``rejected`` token by ``instead``.
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
    """The second numbers that cells print in brackets, with their own metric."""

    metric: str
    unit: str
    decimals: int
    cells: tuple[PrintedCell, ...]


class MainQuantity(_Strict):
    """The numbers of a table that its page shows first, as its method's gain.

    name      what they are: "PEARL over plain decoding"
    over      "columns": ``of`` and ``by`` are rows, with a point per column; "rows":
              the reverse
    of, by    their labels, as in a claim; each number is ``of``, or ``of`` over ``by``.
              Several ``of`` are several models, named by the part before " / "
    among     a pattern for the labels of points; the part matched by "*" names them
    against   the label of the paper's baseline, one for each ``of``; its name is in
              ``against_name``
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

    item, title          its key and its title
    about                what it shows and claims; below that, how we read and ran it
    before_you_cite      up to four facts to know before citing its numbers
    main                 the numbers that its page shows first
    metric, unit         of its numbers, unless a row or column sets another
    decimals             printed decimals, in ``printed_unit`` if that differs
    rows, columns_are    what the row and column labels mean
    cells, beside        the printed numbers, and second ones in brackets
    lost, absent         cells missing from our copy of the text, or from the paper
    clock_from           printed cells from which a latency file was made
    settings, row, column  settings of the runs: for the table, by row and by column
    claims, errata       statements to judge, and printed mistakes
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
        """The unit of its numbers on a page; a column with another unit names it."""
        is_known = (self.unit, self.printed_unit) in SCALES
        return str(self.printed_unit) if is_known else self.unit

    def scale(self, unit: str) -> float:
        """The factor from a number in ``unit`` to the printed one."""
        return SCALES.get((unit, self.printed_unit), 1.0)

    @property
    def file(self) -> str:
        """This table's file, for error messages."""
        return f"data/papers/{self._paper.key}/{self.item}.toml"

    def join(self, paper: Paper) -> None:
        """Makes this a table of ``paper``, which claims and settings may refer to."""
        self._paper = paper

    @property
    def row_labels(self) -> tuple[str, ...]:
        """The rows in the order of [row...] if that names all of them.

        Otherwise the printed rows come first, then those that only the engine fills.
        """
        return _order_labels([row for row, _, _ in self.cells], self.row)

    @property
    def column_labels(self) -> tuple[str, ...]:
        """The columns, ordered as ``row_labels`` orders the rows."""
        return _order_labels([column for _, column, _ in self.cells], self.column)

    def printed(self, row: str, column: str) -> float | None:
        """The printed number of a cell; None if the paper prints none."""
        for printed_row, printed_column, value in self.cells:
            if (printed_row, printed_column) == (row, column):
                return value
        return None

    def settings_of(
        self, row: str = "", column: str = "", kind: str = ""
    ) -> dict[str, Any]:
        """All settings of a cell by name; without labels, the whole table's settings.

        Every "{name}" in them is filled in.

        The column's settings override the table's, and the row's override both. Within
        each of them, settings for ``kind`` override the general ones.
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
                f'another as "{{name}}", which cannot be filled in: {error!r}; give '
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

    A value that is just "{name}" becomes the setting itself, which may be a number.
    Inside a longer string, it becomes the setting's text.
    """
    if not isinstance(value, str) or "{" not in value:
        return value
    inner_name = value[1:-1]
    if inner_name in settings:
        return settings[inner_name]
    return value.format(**settings)


class Paper(_Strict):
    """A paper's data: its tables in print order, its calibrations by name.

    ``facts`` has everything else in ``paper.toml``, by key.
    """

    key: str
    name: str = ""  # its method's name on pages; if empty, the key is used
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
        """Its name on pages."""
        return self.name or self.key

    @property
    def address(self) -> str:
        """Where to read it: on arXiv, or at its URL."""
        return f"arXiv:{self.arxiv}" if self.arxiv else self.url

    def table(self, item: str) -> Table:
        """The table of that name; raises UnknownName listing all names if unknown."""
        if item not in self.tables:
            problem = f"paper {self.key!r} has no {item!r}"
            raise unknown_name(problem, item, self.tables)
        return self.tables[item]

    def printed(self, item: str, row: str, column: str) -> float | None:
        """The printed number of a cell of an item; None if the paper prints none."""
        return self.table(item).printed(row, column)

    def fills(self, item: str, kind: str) -> bool:
        """Whether an engine fills an item with numbers of ``kind``."""
        return item in self.facts.get("fill", {}).get(kind, ())

    def alpha(self, name: str | float) -> float:
        """The acceptance rate of a calibration entry, solved from its printed cell.

        It has six digits. A number is returned unchanged. Raises SpeclibError naming
        the file and the entry if there is no such entry, or if no rate gives the
        printed number.
        """
        if not isinstance(name, str):
            return float(name)
        file = f"data/papers/{self.key}/calibration.toml"
        if name not in self.calibration:
            raise unknown_name(f"{file} has no entry {name!r}", name, self.calibration)
        return self.calibration[name].alpha(self.printed, f"{file}, entry {name!r}")
