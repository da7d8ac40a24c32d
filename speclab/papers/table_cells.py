"""Selects the cells of a table to run, and builds the run for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import Any, NamedTuple

from speclab import machine_facts
from speclab.runs.spec import EmulatedSpec, MeasuredSpec, Spec, VirtualSpec
from speclib.data.pairs import load_pair
from speclib.methods import find, parameters, takes_gamma

from . import same_devices, statistics
from .cell_errors import naming_cell
from .paper_schema import ENGINE_KINDS, Table
from .pearl_figures import FROM_ONE_TRACE

VIRTUAL_TOKENS = 20_480  # per virtual cell, over all its requests
# Prompts of a measured cell, and requests of an emulated one, with the tokens of each.
PROMPTS, TOKENS = 32, 32
EMULATED_REQUESTS, EMULATED_TOKENS = 8, 64
LEAST_MEASURED = 2  # prompts: fewer have no interval
# Requests per seat of a batch, so that even a cell's first part fills all seats.
LEAST_OF_A_SEAT = 3

# The settings without which a cell has no number of a kind.
NEEDED_SETTINGS = {
    "virtual": ("latency", "alpha"),
    "emulated": ("latency", "alpha"),
    "measured": ("pair", "task"),
}


class TableCell(NamedTuple):
    """A cell of a table to run: its position, its run, and the statistic to read.

    ``stat`` is the statistic to read; counts of passes are scaled to
    ``scaled_tokens``. ``calibrates`` says whether the printed cell sets its own run's
    acceptance rate or clock; it is empty if it sets neither. ``plain_specs`` are
    measured cells of plain decoding on all cores of the pair, with which a speed-up is
    also compared.
    """

    row: str
    column: str
    kind: str
    spec: Spec
    stat: str
    scaled_tokens: int = 0
    calibrates: str = ""
    plain_specs: tuple[MeasuredSpec, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Its row, column and kind."""
        return self.row, self.column, self.kind

    @property
    def specs(self) -> tuple[Spec, ...]:
        """All runs for the cell, its own first."""
        return (self.spec, *self.plain_specs)


def cells_to_run(table: Table, kinds: Iterable[str] = ENGINE_KINDS) -> list[TableCell]:
    """The cells of ``table`` that are run for ``kinds``, if [fill] allows them."""
    kinds = [kind for kind in kinds if table.paper.fills(table.item, kind)]
    cells = []
    for row, column in _cells_to_fill(table):
        for kind in kinds:
            settings = table.settings_of(row, column, kind)
            if _is_run(settings, kind):
                cells.append(_table_cell(table, row, column, settings, kind))
    return cells


# -- which cells -----------------------------------------------------------------------
def _cells_to_fill(table: Table) -> Iterator[tuple[str, str]]:
    """The printed cells, and all cells of rows or columns that print none at all."""
    printed_rows = {row for row, _, _ in table.cells}
    printed_columns = {column for _, column, _ in table.cells}
    for row in table.row_labels or ("",):
        for column in table.column_labels:
            is_ours = row not in printed_rows or column not in printed_columns
            if is_ours or table.printed(row, column) is not None:
                yield row, column


def _is_run(settings: dict[str, Any], kind: str) -> bool:
    """Whether a cell with these settings has its own run."""
    if "method" not in settings or "mean_of" in settings or "script" in settings:
        return False
    if not all(name in settings for name in NEEDED_SETTINGS[kind]):
        return False
    if kind == "measured":
        return _machine_computes(settings)
    return settings.get("stat") not in FROM_ONE_TRACE


def _machine_computes(settings: dict[str, Any]) -> bool:
    """Whether this machine has instructions for the cell's dtype, if it sets one."""
    if "dtype" not in settings:
        return True
    place = load_pair(settings["pair"]).place
    if place is None:
        return True
    return machine_facts.computes(settings["dtype"], place.draft + place.target)


# -- what is run -----------------------------------------------------------------------
def _table_cell(
    table: Table,
    row: str,
    column: str,
    settings: dict[str, Any],
    kind: str,
) -> TableCell:
    with naming_cell(table, row, column):
        accounting = settings.get("accounting", "committed")
        stat = settings.get("stat") or settings["metric"]
        prompts = int(settings.get("prompts", 0))
        calibrates = ""
        if kind != "measured":
            calibrates = _role(table, row, column, settings)
        spec = _spec(table, settings, kind)
        if accounting != "committed":
            spec = spec.changed(with_tail=True)
        stat = statistics.apply_accounting(stat, accounting)
        plain_specs: tuple[MeasuredSpec, ...] = ()
        if isinstance(spec, MeasuredSpec) and same_devices.is_speedup(stat):
            plain_specs = same_devices.plain_specs(spec)
        return TableCell(
            row=row,
            column=column,
            kind=kind,
            spec=spec,
            stat=stat,
            scaled_tokens=prompts * _longest(settings),
            calibrates=calibrates,
            plain_specs=plain_specs,
        )


def _spec(table: Table, settings: dict[str, Any], kind: str) -> Spec:
    if kind == "measured":
        return _measured_spec(settings)
    if kind == "emulated":
        return _emulated_spec(table, settings)
    return _virtual_spec(table, settings)


def _measured_spec(settings: dict[str, Any]) -> MeasuredSpec:
    tokens = min(_longest(settings), TOKENS)
    share = settings.get("share", 1)
    as_published = settings.get("accounting") == "as_published"
    return MeasuredSpec(
        **_method_and_settings(settings),
        pair=settings["pair"],
        task=settings["task"],
        tokens=settings.get("tokens") or tokens,
        requests=max(LEAST_MEASURED, round(PROMPTS * share)),
        dtype=settings.get("dtype", "auto"),
        length=settings.get("length"),
        temperature=settings.get("temperature", 0.0),
        ignore_eos=settings.get("ignore_eos", as_published),
    )


def _virtual_spec(table: Table, settings: dict[str, Any]) -> VirtualSpec:
    tokens = min(_longest(settings), VIRTUAL_TOKENS)
    share = settings.get("sample", 1)
    batch = settings.get("batch", 1)
    requests = ceil(VIRTUAL_TOKENS * share / tokens)
    return VirtualSpec(
        **_method_and_settings(settings),
        **_clock_and_rate(table, settings),
        tokens=tokens,
        requests=max(requests, LEAST_OF_A_SEAT * batch) if batch > 1 else requests,
        batch=batch,
    )


def _emulated_spec(table: Table, settings: dict[str, Any]) -> EmulatedSpec:
    return EmulatedSpec(
        **_method_and_settings(settings),
        **_clock_and_rate(table, settings),
        tokens=min(_longest(settings), EMULATED_TOKENS),
        requests=EMULATED_REQUESTS,
    )


def _clock_and_rate(table: Table, settings: dict[str, Any]) -> dict[str, Any]:
    """The fields of a spec whose passes take a latency file's seconds."""
    over = None
    if "over" in settings:
        over = (settings["over"], settings["gamma"])
    return {
        "latency": settings["latency"],
        "alpha": table.paper.alpha(settings["alpha"]),
        "over": over,
        "per_token": settings.get("per_token", 0.0),
        "doubt": settings.get("doubt", 0.0),
    }


def _method_and_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The fields for the method, which every kind of spec has."""
    method = settings["method"]
    find(method)  # for an unknown method, raises an error that lists the known ones
    of_method = []
    for name in parameters(method):
        if name in settings and name != "gamma":
            of_method.append((name, settings[name]))
    return {
        "method": method,
        "gamma": settings["gamma"] if takes_gamma(method) else None,
        "settings": tuple(of_method),
        "cancel": settings.get("cancel"),
    }


def _longest(settings: dict[str, Any]) -> int:
    """The token limit of the cell's requests."""
    return int(settings.get("max_new_tokens", VIRTUAL_TOKENS))


def _role(table: Table, row: str, column: str, settings: dict[str, Any]) -> str:
    """What a printed cell sets for its own run."""
    calibrations = table.paper.calibration
    if settings.get("alpha") in calibrations:
        role = calibrations[settings["alpha"]].role(table.item, row, column)
        if role:
            return role
    return "calibration of the clock" if table.makes_clock(row, column) else ""
