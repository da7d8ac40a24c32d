"""The numbers that a claim is judged on: those of one kind, or quotients of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from speclib.data.latency import load_latency

from .cell_errors import naming_cell
from .table_result import TableResult


class Cell(NamedTuple):
    """Where a number stands: the item, and in it the row and the column."""

    item: str
    row: str
    column: str


class Numbers(Protocol):
    """Numbers of one kind, looked up by cell."""

    @property
    def kind(self) -> str: ...

    def value(self, cell: Cell) -> float | None:
        """The number of a cell; None where there is none."""

    def samples(self, cell: Cell) -> np.ndarray | None:
        """Resamples of a cell's number, to be compared one by one, if it has any."""

    def cost_ratio(self, row: str, column: str) -> float | None:
        """The cost ratio c behind a cell of the table; "*" is any row or column."""


class TableNumbers:
    """A table's numbers of one kind; for ``paper`` also what other tables print."""

    def __init__(self, result: TableResult, kind: str):
        self.kind = kind
        self._result = result
        self._table = result.table

    def value(self, cell: Cell) -> float | None:
        if cell.item == self._table.item:
            return self._result.values.get(self.kind, {}).get((cell.row, cell.column))
        if self.kind == "paper":
            return self._table.paper.printed(*cell)
        return None

    def samples(self, cell: Cell) -> np.ndarray | None:
        if cell.item != self._table.item:
            return None
        return self._result.samples.get((cell.row, cell.column, self.kind))

    def cost_ratio(self, row: str, column: str) -> float | None:
        """c as measured; else as printed, or as the latency file or table has it."""
        if self.kind == "measured":
            return self._measured_cost_ratio(row, column)
        settings = self._table.settings_of(row, column)
        with naming_cell(self._table, row, column):
            if self.kind == "paper" and "printed_c" in settings:
                return float(settings["printed_c"])
            if "latency" in settings:
                return load_latency(settings["latency"]).c
            if "c" in settings:
                return float(settings["c"])
        return None

    def _measured_cost_ratio(self, row: str, column: str) -> float | None:
        for (own_row, own_column, kind), cell in self._result.cell_results.items():
            same_place = row in (own_row, "*") and column in (own_column, "*")
            if kind == "measured" and same_place:
                return cell.c
        return None


class RelativeNumbers:
    """Each number over another one of the same table, whose cell ``below`` names."""

    def __init__(self, numbers: Numbers, below: Callable[[Cell], Cell]):
        self.kind = numbers.kind
        self._numbers = numbers
        self._below = below

    def value(self, cell: Cell) -> float | None:
        top = self._numbers.value(cell)
        bottom = self._numbers.value(self._below(cell))
        if top is None or not bottom:
            return None
        return top / bottom

    def samples(self, cell: Cell) -> np.ndarray | None:
        pair = paired_samples(
            self._numbers.samples(cell), self._numbers.samples(self._below(cell))
        )
        return None if pair is None else pair[0] / pair[1]

    def cost_ratio(self, row: str, column: str) -> float | None:
        return self._numbers.cost_ratio(row, column)


def paired_samples(
    one: np.ndarray | None, other: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """The resamples of two numbers; None unless they may be compared one by one."""
    if one is None or other is None or len(one) != len(other):
        return None
    return one, other
