"""The numbers that a claim is judged on: those of one kind, or quotients of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from speclib.data.latency import load_latency

from .cell_errors import naming_cell
from .estimates import Estimate, divide
from .ledger import Cell
from .paper_schema import Paper
from .table_result import TableResult


class Numbers(Protocol):
    """Numbers of one kind, looked up by cell."""

    @property
    def kind(self) -> str: ...

    def estimate(self, cell: Cell) -> Estimate | None:
        """The number of a cell, and how sure it is; None where there is none."""

    def cost_ratio(self, row: str, column: str) -> float | None:
        """The cost ratio c behind a cell of the table; "*" is any row or column."""


class TableNumbers:
    """A table's numbers of one kind; for ``paper`` also what other tables print."""

    def __init__(self, result: TableResult, kind: str):
        self.kind = kind
        self._result = result
        self._table = result.table

    def estimate(self, cell: Cell) -> Estimate | None:
        if cell.item == self._table.item:
            return self._result.estimate(cell.row, cell.column, self.kind)
        if self.kind != "paper":
            return None
        return PrintedNumbers(self._table.paper).estimate(cell)

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
            is_match = row in (own_row, "*") and column in (own_column, "*")
            if kind == "measured" and is_match:
                return cell.c
        return None


class PrintedNumbers:
    """What a paper prints in the cells of its tables; c is not asked for."""

    kind = "paper"

    def __init__(self, paper: Paper):
        self._paper = paper

    def estimate(self, cell: Cell) -> Estimate | None:
        printed = self._paper.printed(*cell)
        return None if printed is None else Estimate(printed)

    def cost_ratio(self, row: str, column: str) -> float | None:
        return None


class NumbersOverSameDevices:
    """A table's speed-ups over the best plain decoding on the same devices, one kind.

    A number that is no speed-up is none of them.
    """

    def __init__(self, result: TableResult, kind: str):
        self.kind = kind
        self._result = result
        self._first = TableNumbers(result, kind)

    def estimate(self, cell: Cell) -> Estimate | None:
        if cell.item != self._result.table.item:
            return None
        return self._result.over_same_devices.get((cell.row, cell.column, self.kind))

    def cost_ratio(self, row: str, column: str) -> float | None:
        return self._first.cost_ratio(row, column)


class RelativeNumbers:
    """Each number over another one of the same table, whose cell ``below`` names."""

    def __init__(self, numbers: Numbers, below: Callable[[Cell], Cell]):
        self.kind = numbers.kind
        self._numbers = numbers
        self._below = below

    def estimate(self, cell: Cell) -> Estimate | None:
        top = self._numbers.estimate(cell)
        bottom = self._numbers.estimate(self._below(cell))
        if top is None or bottom is None or bottom.value == 0:
            return None
        return divide(top, bottom)

    def cost_ratio(self, row: str, column: str) -> float | None:
        return self._numbers.cost_ratio(row, column)


class NotedNumbers:
    """Numbers that note which cells were asked for, in ``asked``, and say it."""

    def __init__(self, numbers: Numbers):
        self.kind = numbers.kind
        self.asked: list[Cell] = []
        self._numbers = numbers

    def estimate(self, cell: Cell) -> Estimate | None:
        if cell not in self.asked:
            self.asked.append(cell)
        estimate = self._numbers.estimate(cell)
        return None if estimate is None else replace(estimate, cells=frozenset([cell]))

    def cost_ratio(self, row: str, column: str) -> float | None:
        """Not noted: a claim asks for c beside the numbers that it limits."""
        return self._numbers.cost_ratio(row, column)
