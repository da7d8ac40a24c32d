"""Claims about numbers: a ratio, a range, an equality.

Each is about one number or several: those of cells, quotients of cells (``of`` /
``by``), or differences (``of`` - ``by``, where ``by`` starts with "minus").
"""

from __future__ import annotations

from collections.abc import Callable
from operator import sub, truediv
from typing import Any, NamedTuple, cast

from speclib.errors import BadValue

from .bootstrap import Interval, interval
from .claim_numbers import Cell, Numbers, paired_samples
from .schema import Claim, Table
from .verdict import Verdict, join_reasons, list_values, merge_equal, no_numbers

ROUNDING = 1e-9  # what floating point may be off, nothing else
Reference = str | tuple[str, ...]  # a label, or [row, column] or [item, row, column]

MINUS = "minus"  # before what ``by`` names: a difference instead of a quotient


class JudgedNumber(NamedTuple):
    """A number that a claim is about; ``cell`` is that of its ``of``."""

    label: str
    value: float
    cell: Cell
    interval: Interval | None


def judge_ratio(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether of / by (or of - by) is what is expected, within a relative tolerance."""
    judged = _reduce(claim, _judged_numbers(claim, table, numbers))
    expected = []
    for number in judged:
        if not isinstance(claim.expected, dict):
            expected.append(claim.expected)
        elif number.label in claim.expected:
            expected.append(claim.expected[number.label])
        else:
            raise BadValue(
                f"claim {claim.id!r} expects nothing of {number.label!r}; it has: "
                f"{', '.join(claim.expected)}"
            )
    return _compare(claim, judged, expected)


def judge_equal(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether of = by, or of = expected; lists are compared in order."""
    judged = _judged_numbers(claim, table, numbers)
    if claim.by:
        return _compare_with_cells(claim, table, numbers, judged)
    if not isinstance(claim.expected, list | tuple):
        return _compare(claim, judged, [claim.expected] * len(judged))
    if judged and len(judged) != len(claim.expected):
        return Verdict(
            holds=False,
            value=list_values(number.value for number in judged),
            expected=list_values(claim.expected),
            note=f"{len(judged)} numbers, {len(claim.expected)} expected",
        )
    return _compare(claim, judged, list(claim.expected))


def _compare_with_cells(
    claim: Claim, table: Table, numbers: Numbers, judged: list[JudgedNumber]
) -> Verdict:
    """of = by, for each pair of cells of which both have a number."""
    cells = _expand(cast(Reference, claim.of), table)
    other_cells = _expand(cast(Reference, claim.by), table)
    _check_pairs(claim, cells, other_cells)
    other_cell = dict(zip(cells, other_cells, strict=True))

    with_other, expected = [], []
    for number in judged:
        other_value = numbers.value(other_cell[number.cell])
        if other_value is not None:
            with_other.append(number)
            expected.append(other_value)
    return _compare(claim, with_other, expected)


def judge_range(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether low <= of / by (or of - by) <= high.

    Values are rounded first, if the claim says to how many decimals. A ``high`` of "c"
    is the cost ratio behind the number.
    """
    judged = _reduce(claim, _judged_numbers(claim, table, numbers))
    expected = _write_range(claim)
    if not judged:
        return no_numbers(expected)

    low = cast(float, claim.low)  # check_claim has seen to it
    failures = []
    for number in judged:
        high = claim.high
        if isinstance(high, str):
            high = numbers.cost_ratio(number.cell.row, number.cell.column)
        rounded = number.value
        if claim.decimals is not None:
            rounded = round(number.value + ROUNDING, claim.decimals)
        if high is None or not low - ROUNDING <= rounded <= high + ROUNDING:
            limit = "?" if high is None else f"{high:.4g}"
            value = _write_with_interval(number)
            failures.append(f"{number.label}: {value} not in {low:g} .. {limit}")

    values = list_values(number.value for number in judged)
    return Verdict(not failures, values, expected, join_reasons(failures))


def _write_range(claim: Claim) -> str:
    ends = []
    for end in (claim.low, claim.high):
        ends.append(end if isinstance(end, str) else f"{end:g}")
    return " .. ".join(dict.fromkeys(ends))


def _write_with_interval(number: JudgedNumber) -> str:
    if number.interval is None:
        return f"{number.value:.4g}"
    low, high = number.interval
    return f"{number.value:.4g} (95 %: {low:.4g} .. {high:.4g})"


# -- the numbers that a claim is about -------------------------------------------------
def numbers_of_claim(
    claim: Claim, table: Table, numbers: Numbers
) -> list[JudgedNumber]:
    """The numbers on which a ratio, a range or an equality is judged."""
    return _reduce(claim, _judged_numbers(claim, table, numbers))


def _judged_numbers(claim: Claim, table: Table, numbers: Numbers) -> list[JudgedNumber]:
    """of / by, of - by, or of alone, for each cell that has what it takes."""
    cells, labels = _cells_and_labels(cast(Reference, claim.of), claim, table)
    by, join = _second_operand(claim)
    if by is None:
        return _values_of_cells(cells, labels, numbers)

    bottoms, _ = _cells_and_labels(by, claim, table)
    _check_pairs(claim, cells, bottoms)
    judged = []
    for label, top, bottom in zip(labels, cells, bottoms, strict=True):
        top_value, bottom_value = numbers.value(top), numbers.value(bottom)
        if top_value is None or bottom_value is None:
            continue
        if join is truediv and bottom_value == 0:
            continue
        pair = paired_samples(numbers.samples(top), numbers.samples(bottom))
        joined_samples = None if pair is None else join(*pair)
        value = join(top_value, bottom_value)
        judged.append(JudgedNumber(label, value, top, interval(joined_samples)))
    return judged


def _values_of_cells(
    cells: list[Cell], labels: list[str], numbers: Numbers
) -> list[JudgedNumber]:
    judged = []
    for label, cell in zip(labels, cells, strict=True):
        value = numbers.value(cell)
        if value is not None:
            judged.append(
                JudgedNumber(label, value, cell, interval(numbers.samples(cell)))
            )
    return judged


def _second_operand(
    claim: Claim,
) -> tuple[Reference | None, Callable[[Any, Any], Any]]:
    """What ``of`` is divided by or what is taken from it, and which; None: neither."""
    by = claim.by
    if by is None or claim.kind == "equal":
        return None, truediv
    if isinstance(by, tuple) and by[0] == MINUS:
        return by[1] if claim.over else by[1:], sub
    return by, truediv


def _cells_and_labels(
    reference: Reference, claim: Claim, table: Table
) -> tuple[list[Cell], list[str]]:
    """The cells of ``of`` or ``by``, and what to call each.

    Over "columns" the reference is a row and its cells are called by column; over
    "rows" it is a column. Otherwise it spells the cells out.
    """
    if claim.over == "columns":
        row = str(reference)
        columns = list(table.column_labels)
        return [Cell(table.item, row, column) for column in columns], columns
    if claim.over == "rows":
        column = str(reference)
        rows = list(table.row_labels)
        return [Cell(table.item, row, column) for row in rows], rows
    cells = _expand(reference, table)
    return cells, [f"{cell.row} / {cell.column}" for cell in cells]


def _expand(reference: Reference, table: Table) -> list[Cell]:
    """The cells that [row, column] or [item, row, column] names; "*" names all."""
    item = table.item if len(reference) == 2 else reference[0]
    row, column = reference[-2], reference[-1]
    referred = table.paper.table(item)
    rows = referred.row_labels if row == "*" else (row,)
    columns = referred.column_labels if column == "*" else (column,)

    cells = []
    for each_row in rows:
        for each_column in columns:
            cells.append(Cell(item, each_row, each_column))
    return cells


def _check_pairs(claim: Claim, tops: list[Cell], bottoms: list[Cell]) -> None:
    if len(tops) != len(bottoms):
        raise BadValue(
            f"claim {claim.id!r}: of names {len(tops)} cells and by {len(bottoms)}; "
            "they are compared in pairs, so give as many"
        )


def _reduce(claim: Claim, judged: list[JudgedNumber]) -> list[JudgedNumber]:
    """All numbers, or the one that ``reduce`` picks."""
    if not judged or claim.reduce is None:
        return judged
    pick = max if claim.reduce == "max" else min
    return [pick(judged, key=lambda number: number.value)]


# -- the comparison --------------------------------------------------------------------
def _compare(
    claim: Claim, judged: list[JudgedNumber], expected: list[float]
) -> Verdict:
    """Each number against what is expected of it, within the claim's tolerance."""
    if not judged:
        return no_numbers()
    holds = True
    reasons = []
    if claim.reduce:
        reasons.append(judged[0].label)

    for number, wanted in zip(judged, expected, strict=True):
        if abs(number.value - wanted) <= claim.within * abs(wanted) + ROUNDING:
            continue
        holds = False
        if len(judged) > 1:
            reasons.append(f"{number.label}: {number.value:.4g}, expected {wanted:.4g}")
        if number.interval and number.interval.low <= wanted <= number.interval.high:
            low, high = number.interval
            reasons.append(
                f"the 95 % interval {low:.4g} .. {high:.4g} holds {wanted:.4g}"
            )

    return Verdict(
        holds=holds,
        value=list_values(number.value for number in judged),
        expected=list_values(merge_equal(expected)),
        note=join_reasons(reasons),
    )
