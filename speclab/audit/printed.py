"""Printed numbers recomputed from other printed numbers, step by step.

A printed 2.87 may be anything from 2.865 to 2.875. So every formula is worked out for
the printed numbers themselves, and for all combinations of their lowest and highest
values: where these are positive, and a formula has sums, differences, products and
quotients, its own lowest and highest values are among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Paper
from speclib.errors import BadValue

from .item_schema import Arithmetic, CellName, Operand, PrintedTwice, Words
from .quantity import Answer, Quantity, compare_printed, digits

COUNTS = ("runs", "tokens")  # units that are exact where no decimals are printed
MOST_NUMBERS = 13  # of a formula: the combinations double with each
SHOWN_UNITS = {("s", "ms"): 1000.0}  # of the data, as printed, and the factor

# Every value of a number that is tried: first the printed one.
Values = np.ndarray


@dataclass(frozen=True)
class Worked:
    """Evidence from the print, worked out.

    ``quantities`` are its numbers by name, ``lines`` its steps as a reader checks them.
    ``statement`` is what was compared, and ``answer`` whether it holds.
    """

    quantities: Mapping[str, Quantity]
    lines: tuple[str, ...]
    statement: str
    answer: Answer


# -- arithmetic ------------------------------------------------------------------------
def work_out(evidence: Arithmetic, paper_key: str) -> Worked:
    """Takes the cells, follows the steps and makes the comparison.

    Raises SpeclibError naming what is missing, for a cell that is not printed and for a
    formula with an unknown name.
    """
    printed: dict[str, Quantity] = {}
    lines = []
    for name, cell in evidence.cells.items():
        printed[name] = printed_number(load_paper(paper_key), cell)
        lines.append(_line_of_cell(name, cell, printed[name]))
    for name, cell in evidence.brackets.items():
        printed[name] = number_in_brackets(load_paper(paper_key), cell)
        lines.append(_line_of_cell(name, cell, printed[name], "in brackets"))
    for name, number in evidence.numbers.items():
        printed[name] = Quantity.exact(number)
        lines.append(f"{name}: {number:g}, {evidence.because}")

    if evidence.to_the_digit:
        printed = {name: Quantity.exact(printed[name].value) for name in printed}
    tried = _all_combinations(printed)
    for name, formula in evidence.steps:
        tried[name] = _evaluate(formula, tried)
        lines.append(_line_of_step(name, formula, tried))

    left, relation, right = evidence.compare
    answer = compare_printed(
        _operand(left, tried), relation, _operand(right, tried), evidence.within
    )
    statement = f"{_write(left, tried)} {relation} {_write(right, tried)}"
    if evidence.within:
        statement += f", within {100 * evidence.within:g} %"
    quantities = {name: _operand(name, tried) for name in tried}
    return Worked(quantities, tuple(lines), statement, answer)


def work_out_conflict(evidence: PrintedTwice, paper_key: str) -> Worked:
    """A printed cell beside what the erratum of kind "conflict" computes it from."""
    paper = load_paper(paper_key)
    item, row, column = evidence.cell
    for erratum in paper.table(item).errata:
        is_meant = erratum.kind == "conflict" and (row, column) in erratum.cells
        if is_meant and erratum.of is not None:
            arithmetic = _as_arithmetic(evidence, erratum.of, erratum.by)
            return work_out(arithmetic, paper_key)
    raise BadValue(
        f"data/papers/{paper_key}/{item}.toml has no erratum of kind 'conflict' for "
        f"{[row, column]} that says `of` which cell"
    )


def _as_arithmetic(
    evidence: PrintedTwice, of: CellName, by: CellName | None
) -> Arithmetic:
    cells = {"printed": evidence.cell, "elsewhere": of}
    steps = []
    other = "elsewhere"
    if by is not None:
        cells["plain"] = by
        steps.append(("quotient", "elsewhere / plain"))
        other = "quotient"
    return Arithmetic(
        sort="arithmetic",
        says=evidence.says,
        cells=cells,
        steps=tuple(steps),
        compare=("printed", "equals", other),
        to_the_digit=by is None,
    )


def compare_words(evidence: Words) -> Worked:
    """Two statements that should say the same."""
    lines = []
    for source, says in (evidence.one, evidence.other):
        lines.append(f"{source}: {says}")
    is_same = evidence.one[1] == evidence.other[1]
    statement = f"{evidence.one[0]} and {evidence.other[0]} say the same"
    return Worked({}, tuple(lines), statement, "yes" if is_same else "no")


# -- printed numbers -------------------------------------------------------------------
def printed_number(paper: Paper, cell: CellName) -> Quantity:
    """A printed cell, as far as its digits tell. Raises BadValue where it is none."""
    item, row, column = cell
    value = paper.printed(item, row, column)
    if value is None:
        raise BadValue(f"{paper.key} prints no {list(cell)}")
    settings = paper.table(item).settings_of(row, column)
    shown_unit = paper.table(item).printed_unit or settings["unit"]
    factor = SHOWN_UNITS.get((settings["unit"], shown_unit), 1.0)
    is_count = settings["unit"] in COUNTS and settings["decimals"] == 0
    half = 0.0 if is_count else _half_a_digit(settings["decimals"]) / factor
    return Quantity(float(value), value - half, value + half, "paper")


def number_in_brackets(paper: Paper, cell: CellName) -> Quantity:
    """The second number that a cell prints. Raises BadValue where it prints none."""
    item, row, column = cell
    beside = paper.table(item).beside
    if beside is not None:
        for printed_row, printed_column, value in beside.cells:
            if (printed_row, printed_column) == (row, column):
                half = _half_a_digit(beside.decimals)
                return Quantity(value, value - half, value + half, "paper")
    raise BadValue(f"{paper.key} prints nothing in brackets in {list(cell)}")


def _half_a_digit(decimals: int) -> float:
    return 0.5 * 10.0**-decimals


# -- formulas --------------------------------------------------------------------------
def _all_combinations(printed: Mapping[str, Quantity]) -> dict[str, Values]:
    """The values to be tried, by name: those of one index of the arrays go together."""
    uncertain = [name for name, number in printed.items() if not number.is_exact]
    if len(uncertain) > MOST_NUMBERS:
        raise BadValue(
            f"{len(uncertain)} printed numbers in one arithmetic: give at most "
            f"{MOST_NUMBERS}"
        )
    ends = [(printed[name].low, printed[name].high) for name in uncertain]
    combinations = list(product(*ends))

    tried = {}
    for name, number in printed.items():
        tried[name] = np.full(1 + len(combinations), number.value)
    for index, name in enumerate(uncertain):
        tried[name][1:] = [combination[index] for combination in combinations]
    return tried


def _evaluate(formula: str, tried: Mapping[str, Values]) -> Values:
    import pandas as pd

    try:
        return np.asarray(pd.eval(formula, engine="python", local_dict=dict(tried)))
    except Exception as error:  # pandas has many for a formula that is none
        raise BadValue(
            f"cannot work out {formula!r} with {', '.join(tried)}: {error}"
        ) from error


def _operand(operand: Operand, tried: Mapping[str, Values]) -> Quantity:
    if isinstance(operand, str):
        if operand not in tried:
            raise BadValue(f"nothing is called {operand!r}; known: {', '.join(tried)}")
        values = tried[operand]
        return Quantity(float(values[0]), float(values.min()), float(values.max()))
    return Quantity.exact(operand)


# -- words -----------------------------------------------------------------------------
def name_cell(cell: CellName) -> str:
    """A cell as a reader finds it: "Table 6, 5, GSM8K"; an empty part is left out."""
    item, row, column = cell
    parts = [item.replace("-", " ").capitalize(), row, column]
    return ", ".join(part for part in parts if part)


def _line_of_cell(name: str, cell: CellName, number: Quantity, where: str = "") -> str:
    source = f"{name_cell(cell)}, {where}" if where else name_cell(cell)
    return f"{name} = {digits(number.value, 6)} ({source})"


def _line_of_step(name: str, formula: str, tried: Mapping[str, Values]) -> str:
    def number_of(match: re.Match[str]) -> str:
        return digits(tried[match[0]][0], 5)

    with_numbers = re.sub(r"[A-Za-z_]\w*", number_of, formula)
    return f"{name} = {formula} = {with_numbers} = {digits(tried[name][0])}"


def _write(operand: Operand, tried: Mapping[str, Values]) -> str:
    """An operand with its name, if it has one: "quotient (2.871)"."""
    if isinstance(operand, str):
        return f"{operand} ({digits(tried[operand][0])})"
    return f"{operand:g}"
