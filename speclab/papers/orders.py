"""Claims about labels: which of several is highest, and in what order they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from speclib.errors import BadValue

from .claim_numbers import Numbers, PrintedNumbers, RelativeNumbers
from .estimates import Estimate, divide, subtract
from .findings import Finding, settle_above, settle_not_below, tie_limits
from .ledger import Cell
from .paper_schema import Claim, Table
from .settle_claims import Part, conclude
from .verdict import Verdict, join_reasons, merge_equal, no_numbers, write_estimate

UNITS_OF_SHARES = ("share", "cosine")  # of numbers that are at most 1


class Line(NamedTuple):
    """One row or column of a table, along which a claim compares labels.

    ``labels`` are those compared, ``numbers`` has the number of each that has one, and
    ``printed`` what the paper has in its place.
    ``anywhere`` is the (row, column) of the line with "*" in place of a label.
    ``has_shares``: some of them are parts of 1.
    """

    name: str
    anywhere: tuple[str, str]
    labels: Sequence[str]
    numbers: dict[str, Estimate]
    printed: dict[str, Estimate]
    has_shares: bool


class Contrast(NamedTuple):
    """Two numbers in one: ``first`` over ``second``, or minus where that is not safe.

    ``limit`` is what it is where both are equal. Between ``limits_of_tie`` they are as
    good as equal; a difference has none.
    """

    estimate: Estimate
    limit: float
    word: str
    limits_of_tie: tuple[float, ...] = ()


def judge_order(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether the labels of ``order`` fall strictly, in each line that has them all.

    Each label is compared with the next one. The value says in how many lines the
    numbers fall, whether or not that is settled.
    """
    numbers = _with_quotients(claim, numbers)
    expected = " > ".join(claim.order)
    parts = []
    judged, held = 0, 0
    for line in _lines(claim, table, numbers, claim.order):
        if not all(label in line.numbers for label in claim.order):
            continue
        parts_of_line = _compare_in_order(line)
        parts += parts_of_line
        judged += 1
        held += all(part.finding.seems for part in parts_of_line)

    if not judged:
        return no_numbers(expected)
    value = f"{held} of {judged}"
    return conclude(parts, kind=numbers.kind, value=value, expected=expected)


def _compare_in_order(line: Line) -> list[Part]:
    """Each of the line's labels against the next one."""
    parts = []
    for high, low in pairwise(line.labels):
        contrast = _contrast(line, high, low)
        finding = settle_above(
            contrast.estimate, contrast.limit, contrast.limits_of_tie
        )
        parts.append(Part(finding, _write_reason(line, high, low, contrast, finding)))
    return parts


def judge_argmax(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether the expected label is highest, in each line of two numbers or more.

    It is compared with every other label. Equals are both highest. A line without a
    number of the expected label cannot be judged.
    """
    numbers = _with_quotients(claim, numbers)
    labels = table.row_labels if claim.over == "row" else table.column_labels
    parts: list[Part] = []
    winners, expected_winners, not_judged = [], [], []
    for line in _lines(claim, table, numbers, labels):
        expected = _expected_winner(claim, line, numbers)
        if len(line.numbers) < 2 or expected is None:
            continue
        if expected not in line.numbers:
            not_judged.append(f"{line.name} has no number of {expected}")
            continue
        winners.append(_winner(line, expected))
        expected_winners.append(expected)
        parts += _compare_with_others(line, expected)

    if not winners:
        return no_numbers(note=join_reasons(not_judged) or "no numbers")
    return conclude(
        parts,
        kind=numbers.kind,
        value=_write_winners(winners, expected_winners),
        expected=", ".join(merge_equal(expected_winners)),
        remarks=not_judged,
    )


def _write_winners(winners: Sequence[str], expected: Sequence[str]) -> str:
    """Each line's highest label; where all should be one label, how often each was.

    "PEARL in 6 of 7, Speculative Decoding in 1", or "3, 5, 4".
    """
    counts = Counter(winners)
    if len(counts) == 1 or len(set(expected)) > 1:
        return ", ".join(merge_equal(winners))

    words: list[str] = []
    for label, count in counts.most_common():
        of_all = "" if words else f" of {len(winners)}"
        words.append(f"{label} in {count}{of_all}")
    return ", ".join(words)


def _winner(line: Line, expected: str) -> str:
    """The label with the highest number; of equals the expected one."""

    def rank(label: str) -> tuple[float, bool]:
        return line.numbers[label].value, label == expected

    return max(line.numbers, key=rank)


def _compare_with_others(line: Line, expected: str) -> list[Part]:
    """The expected label against every other one of the line.

    Of those that are settled to be higher, the highest alone gives a reason.
    """
    parts = []
    higher = []
    for label in line.numbers:
        if label == expected:
            continue
        contrast = _contrast(line, expected, label)
        finding = settle_not_below(
            contrast.estimate, contrast.limit, contrast.limits_of_tie
        )
        reason = _write_reason(line, expected, label, contrast, finding)
        if finding.answer == "no":
            higher.append(label)
            reason = ""
        parts.append(Part(finding, reason))

    if higher:
        highest = max(higher, key=lambda label: line.numbers[label].value)
        reason = _write_two(line, highest, expected)
        for index, part in enumerate(parts):
            if part.finding.answer == "no":
                parts[index] = part._replace(reason=reason)
                break
    return parts


# -- two numbers -----------------------------------------------------------------------
def _contrast(line: Line, high: str, low: str) -> Contrast:
    """The quotient of two positive numbers, the difference of others.

    Exact numbers are compared by their difference, which floating point leaves alone.
    """
    first, second = line.numbers[high], line.numbers[low]
    are_positive = first.is_positive and second.is_positive
    are_exact = first.is_exact and second.is_exact
    if are_exact or not are_positive:
        return Contrast(subtract(first, second), 0.0, "minus")
    limits_of_tie = tie_limits(_printed_quotient(line, high, low), line.has_shares)
    return Contrast(divide(first, second), 1.0, "over", limits_of_tie)


def _printed_quotient(line: Line, high: str, low: str) -> float | None:
    """The paper's own; None where it does not print both numbers."""
    first, second = line.printed.get(high), line.printed.get(low)
    if first is None or second is None or min(first.value, second.value) <= 0:
        return None
    return first.value / second.value


def _write_reason(
    line: Line, high: str, low: str, contrast: Contrast, finding: Finding
) -> str:
    """Both numbers, or where they are not settled their contrast with its interval."""
    if finding.answer in ("yes", "no"):
        return _write_two(line, high, low)
    contrast_in_words = write_estimate(contrast.estimate)
    reason = f"{line.name}: {high} {contrast.word} {low} {contrast_in_words}"
    if finding.answer == "tie":
        reason += f", less than {100 * (contrast.limits_of_tie[1] - 1):.2g} % apart"
    return reason


def _write_two(line: Line, first: str, second: str) -> str:
    values = line.numbers[first].value, line.numbers[second].value
    return f"{line.name}: {first} {values[0]:.4g}, {second} {values[1]:.4g}"


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


def _lines(
    claim: Claim, table: Table, numbers: Numbers, labels: Sequence[str]
) -> Iterator[Line]:
    """Each column that a claim over "row" judges, each row of one over "column".

    ``labels`` are those to compare along it.
    """
    printed = _with_quotients(claim, PrintedNumbers(table.paper))
    compares_rows = claim.over == "row"
    if compares_rows:
        all_lines, chosen = table.column_labels, claim.column
    else:
        all_lines, chosen = table.row_labels, claim.row

    for name in _names(chosen, all_lines):
        cells = {}
        for label in labels:
            row, column = (label, name) if compares_rows else (name, label)
            cells[label] = Cell(table.item, row, column)
        yield Line(
            name=name,
            anywhere=("*", name) if compares_rows else (name, "*"),
            labels=labels,
            numbers=_look_up(cells, numbers),
            printed=_look_up(cells, printed),
            has_shares=any(_is_share(table, cell) for cell in cells.values()),
        )


def _is_share(table: Table, cell: Cell) -> bool:
    return table.settings_of(cell.row, cell.column)["unit"] in UNITS_OF_SHARES


def _look_up(cells: dict[str, Cell], numbers: Numbers) -> dict[str, Estimate]:
    """The number of each label that has one."""
    found = {}
    for label, cell in cells.items():
        estimate = numbers.estimate(cell)
        if estimate is not None:
            found[label] = estimate
    return found


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
    label: str | None = expected
    if label != "round(c)":
        return label
    c = numbers.cost_ratio(*line.anywhere)
    return None if c is None else str(round(c))
