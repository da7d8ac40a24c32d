"""Claims about numbers: a ratio, a range, an equality. Judged for ``claims``, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import sub, truediv
from typing import NamedTuple

import numpy as np

from .schema import Claim, Table
from .statistics import interval

Number = float | None
SLACK = 1e-9  # rounding of floating point, nothing else
FEW = 8  # numbers listed one by one; more are given as their range
MINUS = "minus"  # before what ``by`` names: a difference, no quotient


class Numbers(NamedTuple):
    """One kind's numbers. ``cell(item, row, column)``; ``samples`` of the same: resamples that may
    be compared one by one, or None; ``c(row, column)``: the cost ratio behind a cell."""

    kind: str
    cell: Callable[[str, str, str], Number]
    c: Callable[[str, str], Number]
    samples: Callable[[str, str, str], np.ndarray | None] = lambda *_: None


class Verdict(NamedTuple):
    """``holds`` is None where there is nothing to judge."""

    holds: bool | None
    value: str
    expected: str
    note: str = ""


class Found(NamedTuple):
    """A number a claim is about; ``cell`` is that of its ``of``; ``span`` its interval, if any."""

    label: str
    value: float
    cell: tuple[str, str, str]
    span: tuple[float | None, float | None]


def ratio(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """of / by (or of - by) = expected, within a relative tolerance."""

    def expected(found):
        return (
            claim.expected[found.label]
            if isinstance(claim.expected, dict)
            else claim.expected
        )

    return _compare(claim, _reduced(claim, _quotients(claim, table, numbers)), expected)


def equal(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """of = by, or of = expected; lists in order."""
    found = _quotients(claim, table, numbers)
    if claim.by:
        other = dict(
            zip(_expand(claim.of, table), _expand(claim.by, table), strict=True)
        )
        found = [f for f in found if numbers.cell(*other[f.cell]) is not None]
        return _compare(claim, found, lambda f: numbers.cell(*other[f.cell]))
    if isinstance(claim.expected, list | tuple):
        if found and len(found) != len(claim.expected):
            return Verdict(
                False,
                listed(f.value for f in found),
                listed(claim.expected),
                f"{len(found)} numbers, {len(claim.expected)} expected",
            )
        wanted = {
            f.cell: value for f, value in zip(found, claim.expected, strict=False)
        }
        return _compare(claim, found, lambda f: wanted[f.cell])
    return _compare(claim, found, lambda f: claim.expected)


def inside(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """low <= of / by (or of - by) <= high, rounded first if the claim says to how many decimals."""
    found, fails = _reduced(claim, _quotients(claim, table, numbers)), []
    ends = [
        end if isinstance(end, str) else f"{end:g}" for end in (claim.low, claim.high)
    ]
    expected = " .. ".join(dict.fromkeys(ends))
    for f in found:
        high = numbers.c(*f.cell[1:]) if claim.high == "c" else claim.high
        seen = (
            f.value
            if claim.decimals is None
            else round(f.value + SLACK, claim.decimals)
        )
        if high is None or not claim.low - SLACK <= seen <= high + SLACK:
            limit = "?" if high is None else format(high, ".4g")
            near = (
                ""
                if f.span[0] is None
                else f" (95 %: {f.span[0]:.4g} .. {f.span[1]:.4g})"
            )
            fails.append(
                f"{f.label}: {f.value:.4g}{near} not in {claim.low:g} .. {limit}"
            )
    if not found:
        return Verdict(None, "", expected, "no numbers")
    return Verdict(not fails, listed(f.value for f in found), expected, reasons(fails))


def _quotients(claim: Claim, table: Table, numbers: Numbers) -> list[Found]:
    """of / by, of - by, or of alone, for each cell that has both."""
    tops, labels = _cells(claim.of, claim, table)
    by, join = claim.by if claim.kind != "equal" else None, truediv
    if isinstance(by, tuple) and by[0] == MINUS:
        by, join = by[1] if claim.over else by[1:], sub
    bottoms = [None] * len(tops) if by is None else _cells(by, claim, table)[0]
    out = []
    for label, top, bottom in zip(labels, tops, bottoms, strict=True):
        value, other = (
            numbers.cell(*top),
            None if bottom is None else numbers.cell(*bottom),
        )
        if value is None or (
            bottom and (other is None or join is truediv and not other)
        ):
            continue
        value = value if bottom is None else join(value, other)
        out.append(Found(label, value, top, _span(numbers, top, bottom, join)))
    return out


def _span(numbers: Numbers, top: tuple, bottom: tuple | None, join: Callable):
    """The 95 % interval of a cell, or of two that are joined, resampled together."""
    above = numbers.samples(*top)
    return interval(
        above if bottom is None else _joined(above, numbers.samples(*bottom), join)
    )


def _joined(
    above: np.ndarray | None, below: np.ndarray | None, join: Callable = truediv
):
    """One by one; None where the two cannot be compared so."""
    comparable = above is not None and below is not None and len(above) == len(below)
    return join(above, below) if comparable else None


def relative(claim: Claim, numbers: Numbers) -> Numbers:
    """The numbers over those of row ``by`` in the same column (over = "column"), or of column
    ``by`` in the same row."""

    def under(row: str, column: str) -> tuple[str, str]:
        return (claim.by, column) if claim.over == "column" else (row, claim.by)

    def cell(item: str, row: str, column: str) -> Number:
        top, bottom = (
            numbers.cell(item, row, column),
            numbers.cell(item, *under(row, column)),
        )
        return None if top is None or not bottom else top / bottom

    def samples(item: str, row: str, column: str) -> np.ndarray | None:
        return _joined(
            numbers.samples(item, row, column),
            numbers.samples(item, *under(row, column)),
        )

    return numbers._replace(cell=cell, samples=samples)


def _cells(
    ref, claim: Claim, table: Table
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """The cells of ``of`` or ``by``, and what to call them: over "columns" a row's, over "rows" a
    column's, otherwise those the reference spells out."""
    if claim.over == "columns":
        return [(table.item, ref, c) for c in table.column_labels], list(
            table.column_labels
        )
    if claim.over == "rows":
        return [(table.item, r, ref) for r in table.row_labels], list(table.row_labels)
    cells = _expand(ref, table)
    return cells, [" / ".join(cell[1:]) for cell in cells]


def _expand(ref: tuple[str, ...], table: Table) -> list[tuple[str, str, str]]:
    """The cells a reference names: [row, column] or [item, row, column], "*" spelled out."""
    item, row, column = ref if len(ref) == 3 else (table.item, *ref)
    there = table.paper.table(item)
    return [
        (item, r, c)
        for r in (there.row_labels if row == "*" else [row])
        for c in (there.column_labels if column == "*" else [column])
    ]


def _reduced(claim: Claim, found: list[Found]) -> list[Found]:
    """All, or the one that ``reduce`` picks."""
    if not claim.reduce or not found:
        return found
    return [(max if claim.reduce == "max" else min)(found, key=lambda f: f.value)]


def _compare(
    claim: Claim, found: list[Found], expected: Callable[[Found], float]
) -> Verdict:
    if not found:
        return Verdict(None, "", "", "no numbers")
    wanted, notes, holds = [expected(f) for f in found], [], True
    for f, want in zip(found, wanted, strict=True):
        if abs(f.value - want) <= claim.within * abs(want) + SLACK:
            continue
        holds = False
        if len(found) > 1:
            notes.append(f"{f.label}: {f.value:.4g}, expected {want:.4g}")
        if f.span[0] is not None and f.span[0] <= want <= f.span[1]:
            notes.append(
                f"the 95 % interval {f.span[0]:.4g} .. {f.span[1]:.4g} holds {want:.4g}"
            )
    if claim.reduce:
        notes.insert(0, found[0].label)
    return Verdict(
        holds, listed(f.value for f in found), listed(once(wanted)), reasons(notes)
    )


def reasons(found: list[str], between: str = "; ") -> str:
    """The first three, and how many more there are."""
    more = [f"and {len(found) - 3} more"] if len(found) > 4 else []
    return between.join([*found[:3], *more] if more else found)


def listed(values: Iterable[float]) -> str:
    """Each value, or the range of many."""
    values = list(values)
    if len(values) > FEW:
        return f"{min(values):.4g} .. {max(values):.4g}"
    return ", ".join(f"{v:.4g}" for v in values)


def once(values: list) -> list:
    """The one value that all share, or all of them."""
    return values[:1] if len(set(values)) == 1 else values
