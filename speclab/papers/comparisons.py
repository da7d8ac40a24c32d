"""Claims about numbers: a ratio, a range, an equality.

Each is about one number or several: those of cells, quotients of cells (``of`` /
``by``), or differences (``of`` - ``by``, where ``by`` starts with "minus").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from speclib.errors import BadValue

from .claim_numbers import Numbers
from .estimates import Estimate, divide, subtract
from .findings import Finding, settle_within
from .ledger import Cell
from .paper_schema import Claim, Table
from .settle_claims import Part, conclude
from .verdict import Verdict, list_values, merge_equal, no_numbers, write_estimate

ROUNDING = 1e-9  # what floating point may be off, nothing else
Reference = str | tuple[str, ...]  # a label, or [row, column] or [item, row, column]

MINUS = "minus"  # before what ``by`` names: a difference instead of a quotient


class JudgedNumber(NamedTuple):
    """A number that a claim is about; ``cell`` is that of its ``of``."""

    label: str
    cell: Cell
    estimate: Estimate

    @property
    def value(self) -> float:
        return self.estimate.value


class Target(NamedTuple):
    """What a number should be, and the range in which it is taken to be that."""

    wanted: float
    low: float
    high: float


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
    targets = [_within(claim, wanted) for wanted in expected]
    return _compare(claim, numbers.kind, judged, targets)


def judge_equal(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether of = by, or of = expected; lists are compared in order."""
    judged = _judged_numbers(claim, table, numbers)
    if claim.by:
        return _compare_with_cells(claim, table, numbers, judged)

    expected = claim.expected
    if not isinstance(expected, list | tuple):
        expected = [expected] * len(judged)
    elif not judged:
        return no_numbers()
    elif len(judged) != len(expected):
        return Verdict(
            holds="no",
            value=list_values(number.value for number in judged),
            expected=list_values(expected),
            note=f"{len(judged)} numbers, {len(expected)} expected",
        )
    targets = [_within(claim, wanted) for wanted in expected]
    return _compare(claim, numbers.kind, judged, targets)


def _compare_with_cells(
    claim: Claim, table: Table, numbers: Numbers, judged: list[JudgedNumber]
) -> Verdict:
    """of = by, for each pair of cells of which both have a number.

    What is judged is their difference. The tolerance is relative to the number of
    ``by``, as if that were exact.
    """
    cells = _expand(cast(Reference, claim.of), table)
    other_cells = _expand(cast(Reference, claim.by), table)
    _check_pairs(claim, cells, other_cells)
    other_cell = dict(zip(cells, other_cells, strict=True))

    with_other, targets, findings = [], [], []
    for number in judged:
        other = numbers.estimate(other_cell[number.cell])
        if other is None:
            continue
        target = _within(claim, other.value)
        difference = subtract(number.estimate, other)
        finding = settle_within(
            difference, target.low - other.value, target.high - other.value
        )
        with_other.append(number)
        targets.append(target)
        findings.append(finding)
    return _conclude(claim, numbers.kind, with_other, targets, findings)


def judge_range(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether low <= of / by (or of - by) <= high.

    With ``decimals`` the values count as rounded to so many, which makes the range
    wider by half a unit of the last one. A ``high`` of "c" is the cost ratio behind the
    number, taken as exact; a number whose c is not known cannot be judged.
    """
    judged = _reduce(claim, _judged_numbers(claim, table, numbers))
    expected = _write_range(claim)
    if not judged:
        return no_numbers(expected)

    low = cast(float, claim.low)  # check_claim has seen to it
    parts, values = [], []
    for number in judged:
        high = claim.high
        if isinstance(high, str):
            high = numbers.cost_ratio(number.cell.row, number.cell.column)
        if high is None:
            continue
        finding = settle_within(number.estimate, *_widen(low, high, claim.decimals))
        value = write_estimate(number.estimate)
        reason = f"{number.label}: {value} not in {low:g} .. {high:.4g}"
        if finding.answer == "open":
            reason = f"{number.label}: {_write_open(finding)}"
        parts.append(Part(finding, reason))
        values.append(number.value)

    if not parts:
        return no_numbers(expected, "c is not known")
    return conclude(
        parts, kind=numbers.kind, value=list_values(values), expected=expected
    )


def _widen(low: float, high: float, decimals: int | None) -> tuple[float, float]:
    """The range, as wide as rounding to ``decimals`` and floating point make it."""
    if decimals is None:
        return low - ROUNDING, high + ROUNDING
    half_unit = 0.5 * 10.0**-decimals
    # A half is rounded up: at the lower end into the range, at the upper out of it.
    return low - half_unit - ROUNDING, high + half_unit - ROUNDING


def _write_range(claim: Claim) -> str:
    """The claim's range, of which an end may be the name of a number."""
    ends = []
    for end in (claim.low, claim.high):
        ends.append(end if isinstance(end, str) else f"{end:g}")
    return " .. ".join(dict.fromkeys(ends))


def _write_ends(low: float, high: float) -> str:
    """A range as "1 .. 2", or one number where both ends are the same."""
    ends = []
    for end in (low, high):
        without_rounding = round(end, 8) + 0.0  # and without the sign of -0.0
        ends.append(f"{without_rounding:.4g}")
    return " .. ".join(dict.fromkeys(ends))


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
        return _numbers_of_cells(cells, labels, numbers)

    bottoms, _ = _cells_and_labels(by, claim, table)
    _check_pairs(claim, cells, bottoms)
    judged = []
    for label, top_cell, bottom_cell in zip(labels, cells, bottoms, strict=True):
        top, bottom = numbers.estimate(top_cell), numbers.estimate(bottom_cell)
        if top is None or bottom is None:
            continue
        if join is divide and bottom.value == 0:
            continue
        judged.append(JudgedNumber(label, top_cell, join(top, bottom)))
    return judged


def _numbers_of_cells(
    cells: list[Cell], labels: list[str], numbers: Numbers
) -> list[JudgedNumber]:
    judged = []
    for label, cell in zip(labels, cells, strict=True):
        estimate = numbers.estimate(cell)
        if estimate is not None:
            judged.append(JudgedNumber(label, cell, estimate))
    return judged


def _second_operand(
    claim: Claim,
) -> tuple[Reference | None, Callable[[Estimate, Estimate], Estimate]]:
    """What ``of`` is divided by or what is taken from it, and which; None: neither."""
    by = claim.by
    if by is None or claim.kind == "equal":
        return None, divide
    if isinstance(by, tuple) and by[0] == MINUS:
        return by[1] if claim.over else by[1:], subtract
    return by, divide


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
    """All numbers, or the one that ``reduce`` picks, with its own interval.

    That it was picked is not accounted for: the largest of several numbers is rather
    too large, and which one it is may itself not be settled. So it also rests on the
    cells of those that it may yet turn out to be.
    """
    if not judged or claim.reduce is None:
        return judged
    pick = max if claim.reduce == "max" else min
    picked = pick(judged, key=lambda number: number.value)
    rivals = [n.estimate for n in judged if n.estimate.overlaps(picked.estimate)]
    cells = picked.estimate.cells.union(*[rival.cells for rival in rivals])
    return [picked._replace(estimate=replace(picked.estimate, cells=cells))]


# -- the comparison --------------------------------------------------------------------
def _within(claim: Claim, wanted: float) -> Target:
    """``wanted``, with the claim's relative tolerance around it."""
    tolerance = claim.within * abs(wanted) + ROUNDING
    return Target(wanted, wanted - tolerance, wanted + tolerance)


def _compare(
    claim: Claim, kind: str, judged: list[JudgedNumber], targets: Sequence[Target]
) -> Verdict:
    """Each number against what is expected of it, within the claim's tolerance."""
    findings = []
    for number, target in zip(judged, targets, strict=True):
        findings.append(settle_within(number.estimate, target.low, target.high))
    return _conclude(claim, kind, judged, targets, findings)


def _conclude(
    claim: Claim,
    kind: str,
    judged: list[JudgedNumber],
    targets: Sequence[Target],
    findings: Sequence[Finding],
) -> Verdict:
    if not judged:
        return no_numbers()
    remarks = [judged[0].label] if claim.reduce else []
    are_many = len(judged) > 1
    is_difference = claim.kind == "equal" and claim.by is not None

    parts = []
    for number, target, finding in zip(judged, targets, findings, strict=True):
        reason = f"{write_estimate(number.estimate)}, expected {target.wanted:.4g}"
        if finding.answer == "open":
            reason = _write_open(finding, is_difference)
        if are_many:
            reason = f"{number.label}: {reason}"
        elif finding.estimate.is_exact:
            reason = ""  # value and expected say it all
        parts.append(Part(finding, reason))

    return conclude(
        parts,
        kind=kind,
        value=list_values(number.value for number in judged),
        expected=list_values(merge_equal([target.wanted for target in targets])),
        remarks=remarks,
    )


def _write_open(finding: Finding, is_difference: bool = False) -> str:
    """The number that was judged, and between which limits it should be."""
    number = write_estimate(finding.estimate)
    if is_difference:
        number = f"difference {number}"
    return f"{number} against {_write_ends(*finding.limits)}"
