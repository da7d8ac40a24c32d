"""Claims about labels: which of several is highest, and in what order they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from speclib.errors import BadValue

from .claim_numbers import Cell, Numbers, RelativeNumbers, paired_samples
from .schema import Claim, Table
from .verdict import Verdict, join_reasons, merge_equal, no_numbers

SURE = 0.975  # of the resamples must agree before an order counts as settled


class Line(NamedTuple):
    """One row or column of a table, along which a claim compares labels.

    ``cells`` holds the cell of every label, ``values`` the number of each label that
    has one. ``anywhere`` is the (row, column) of the line with "*" in place of a label.
    """

    name: str
    anywhere: tuple[str, str]
    cells: dict[str, Cell]
    values: dict[str, float]


def judge_order(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether the labels of ``order`` fall strictly, in each line that has them all."""
    numbers = _with_quotients(claim, numbers)
    expected = " > ".join(claim.order)
    judged, broken = 0, set()
    failures, unsettled = [], []
    for line in _lines(claim, table, numbers):
        values = line.values
        if not all(label in values for label in claim.order):
            continue
        judged += 1
        for high, low in pairwise(claim.order):
            if not values[high] > values[low]:
                broken.add(line.name)
                failures.append(
                    f"{line.name}: {high} {values[high]:.4g}, {low} {values[low]:.4g}"
                )
            elif not _is_settled(numbers, line.cells[high], line.cells[low]):
                unsettled.append(f"{line.name}: {high} and {low}")

    if not judged:
        return no_numbers(expected)
    held = f"{judged - len(broken)} of {judged}"
    return Verdict(not failures, held, expected, _note(failures, unsettled))


def judge_argmax(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether the expected label is highest, in each line of two numbers or more."""
    numbers = _with_quotients(claim, numbers)
    winners, expected_winners = [], []
    failures, unsettled = [], []
    for line in _lines(claim, table, numbers):
        values = line.values
        expected = _expected_winner(claim, line, numbers)
        if len(values) < 2 or expected is None:
            continue

        winner = max(values, key=values.__getitem__)
        winners.append(winner)
        expected_winners.append(expected)
        if winner != expected:
            number = f" {values[expected]:.4g}" if expected in values else ": no value"
            failures.append(
                f"{line.name}: {winner} {values[winner]:.4g}, {expected}{number}"
            )
        for label in values:
            if label == winner:
                continue
            if not _is_settled(numbers, line.cells[winner], line.cells[label]):
                unsettled.append(f"{line.name}: {winner} and {label}")

    if not winners:
        return no_numbers()
    return Verdict(
        holds=not failures,
        value=", ".join(merge_equal(winners)),
        expected=", ".join(merge_equal(expected_winners)),
        note=_note(failures, unsettled),
    )


# -- lines -----------------------------------------------------------------------------
def _with_quotients(claim: Claim, numbers: Numbers) -> Numbers:
    """The numbers; with ``by``, each over that of row or column ``by`` beside it."""
    if not claim.by:
        return numbers
    neighbour = str(claim.by)

    def below(cell: Cell) -> Cell:
        if claim.over == "column":
            return cell._replace(row=neighbour)
        return cell._replace(column=neighbour)

    return RelativeNumbers(numbers, below)


def _lines(claim: Claim, table: Table, numbers: Numbers) -> Iterator[Line]:
    """Each column that a claim over "row" judges, each row of one over "column"."""
    compares_rows = claim.over == "row"
    if compares_rows:
        labels, all_lines, chosen = table.row_labels, table.column_labels, claim.column
    else:
        labels, all_lines, chosen = table.column_labels, table.row_labels, claim.row

    for name in _names(chosen, all_lines):
        cells, values = {}, {}
        for label in labels:
            row, column = (label, name) if compares_rows else (name, label)
            cells[label] = Cell(table.item, row, column)
            value = numbers.value(cells[label])
            if value is not None:
                values[label] = value
        anywhere = ("*", name) if compares_rows else (name, "*")
        yield Line(name, anywhere, cells, values)


def _names(
    chosen: str | tuple[str, ...] | None, all_names: tuple[str, ...]
) -> tuple[str, ...]:
    """The lines that a claim chooses: all of them, or those it names."""
    if chosen is None or chosen == "*":
        return all_names
    if isinstance(chosen, str):
        return (chosen,)
    return chosen


def _expected_winner(claim: Claim, line: Line, numbers: Numbers) -> str | None:
    """The label that should be highest; None if it takes a c that is not known."""
    expected = claim.expected
    if isinstance(expected, dict):
        if line.name not in expected:
            raise BadValue(
                f"claim {claim.id!r} expects nothing of {line.name!r}; it has: "
                f"{', '.join(expected)}"
            )
        expected = expected[line.name]
    if expected != "round(c)":
        return expected
    c = numbers.cost_ratio(*line.anywhere)
    return None if c is None else str(round(c))


# -- what the requests leave open ------------------------------------------------------
def _is_settled(numbers: Numbers, high: Cell, low: Cell) -> bool:
    """Whether ``high`` exceeds ``low`` in 97.5 % of their resamples.

    Numbers without resamples that may be compared count as settled.
    """
    pair = paired_samples(numbers.samples(high), numbers.samples(low))
    if pair is None:
        return True
    high_samples, low_samples = pair
    return float((high_samples > low_samples).mean()) >= SURE


def _note(failures: list[str], unsettled: list[str]) -> str:
    parts = []
    if failures:
        parts.append(join_reasons(failures))
    if unsettled:
        pairs = join_reasons(unsettled, ", ")
        parts.append(f"not settled by these requests: {pairs}")
    return "; ".join(parts)
