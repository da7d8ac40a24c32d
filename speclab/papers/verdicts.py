"""Judges whether a paper's claims about its numbers hold for other numbers, too.

    verdict(claim, table, numbers)  ->  yes | no | open | not judged

is a pure function: the same claim and numbers give the same verdict. A claim is about
an order, a maximum, a ratio, a range or an equality. It consists of one or more
questions, each about one number. If the number's 95 % interval is within the claim's
limits, the answer is yes; if it is outside, no; if it crosses a limit, open::

    limits of the claim       |-------------|
    yes                          |---o--|
    no                                        |-o--|
    open                                |---o----|

Whether one number is above another is a question about their quotient, with the limit
1. A claim holds if every answer is yes, and does not hold if any answer is no.

**Stand-ins judge only what they can.** Small models on a small machine can confirm or
refute an order, a trend, the position of a maximum, and a bound of the method (a range
that ends at c). They cannot say how fast a paper's own models were on its own hardware:
such a claim is not judged by their measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Literal, NamedTuple, Protocol, TypeVar, cast

from speclib.errors import BadValue

from .check_claims import MINUS, check_claim
from .ledger import Cell, VerdictLine
from .numbers import Number, divide, subtract
from .paper_schema import Claim, Table

T = TypeVar("T")
Answer = Literal["yes", "no", "open", "not judged"]
Reference = str | tuple[str, ...]  # a label, or [row, column] or [item, row, column]

ROUNDING = 1e-9  # the tolerance for floating-point errors, and for nothing else
FEW = 8  # at most this many numbers are listed; more are given as a range
FIRST_REASONS = 3  # the reasons that are listed if there are more than four
OTHER_HARDWARE = "not judged: other models and hardware than the paper's"


class Numbers(Protocol):
    """Numbers of one kind, looked up by cell.

    ``are_stand_ins``: whether they were measured with other models, on other hardware
    than the paper's.
    """

    kind: str
    are_stand_ins: bool

    def number(self, cell: Cell) -> Number | None:
        """The number of a cell; None if missing."""

    def cost_ratio(self, row: str, column: str) -> float | None:
        """The cost ratio c behind a cell of the table; "*" is any row or column."""

    def why_missing(self, cell: Cell) -> str:
        """Why a cell's number is still to come; "" if no number is expected."""


class Verdict(NamedTuple):
    """Whether a claim holds, the value found, the expected one, and the reason."""

    holds: Answer
    value: str = ""
    expected: str = ""
    note: str = ""


class Question(NamedTuple):
    """The answer to one question of a claim; ``reason``: why it is not yes."""

    answer: Answer
    reason: str = ""


def verdict_line(claim: Claim, table: Table, numbers: Numbers) -> VerdictLine:
    """The verdict as a line in the reports."""
    verdict_found = verdict(claim, table, numbers)
    return VerdictLine(
        table.paper.key, table.item, claim.id, numbers.kind, *verdict_found
    )


def verdict(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    """Whether a claim of ``table`` holds for ``numbers``.

    Raises SpeclibError naming the claim if its fields do not fit its kind.
    """
    check_claim(claim)
    if numbers.kind not in claim.kinds:
        return Verdict("not judged", note="a claim about the print")
    noted = _Noted(numbers)
    found = JUDGES[claim.kind](claim, table, noted)
    if noted.missing:
        holds: Answer = "not judged" if noted.is_busy else "open"
        return found._replace(holds=holds, note=_join(noted.missing))
    if numbers.are_stand_ins and found.value and not can_be_judged_by_stand_ins(claim):
        return found._replace(holds="not judged", note=OTHER_HARDWARE)
    return found


def can_be_judged_by_stand_ins(claim: Claim) -> bool:
    """Whether the claim is about an order, a maximum, or a bound of the method."""
    return claim.kind in ("order", "argmax") or claim.high == "c"


class _Noted:
    """Numbers, with a list of those requested that are not available yet."""

    def __init__(self, numbers: Numbers):
        self.kind = numbers.kind
        self.missing: list[str] = []
        self.is_busy = False
        self._numbers = numbers

    def number(self, cell: Cell) -> Number | None:
        number = self._numbers.number(cell)
        why = self._numbers.why_missing(cell)
        if number is not None and number.is_busy:
            self.is_busy = True
            why = "other programs kept the machine busy"
        if why:
            self.missing.append(f"{cell.row} / {cell.column}: {why}")
        return number

    def cost_ratio(self, row: str, column: str) -> float | None:
        return self._numbers.cost_ratio(row, column)


# -- answers ---------------------------------------------------------------------------
def _within(number: Number, low: float, high: float) -> Answer:
    """Whether the number lies in low .. high, ends included."""
    interval = number.interval
    if low <= interval.low and interval.high <= high:
        return "yes"
    return "no" if interval.high < low or interval.low > high else "open"


def _above(number: Number, limit: float) -> Answer:
    """Whether the number is above ``limit``; an exact number equal to it is not."""
    if number.interval.low > limit:
        return "yes"
    return "no" if number.interval.high <= limit else "open"


def _conclude(
    questions: Sequence[Question],
    value: str,
    expected: str,
    remarks: Sequence[str] = (),
) -> Verdict:
    """The verdict on a claim, from the answers to all its questions."""
    answers = [question.answer for question in questions]
    answer = next((a for a in ("no", "open") if a in answers), "yes")
    reasons = [q.reason for q in questions if q.answer == answer != "yes" and q.reason]
    note = _join([*remarks, *dict.fromkeys(reasons)])
    if answer == "open":
        note = f"not settled: {note}"
    return Verdict(cast(Answer, answer), value, expected, note)


def _nothing(expected: str = "", note: str = "no numbers") -> Verdict:
    return Verdict("not judged", "", expected, note)


# -- orders and maxima -----------------------------------------------------------------
class Line(NamedTuple):
    """A row or column of a table, and its numbers by label.

    ``anywhere``: the line as (row, column), with "*" for the label.
    """

    name: str
    anywhere: tuple[str, str]
    numbers: dict[str, Number]


def judge_order(claim: Claim, table: Table, numbers: _Noted) -> Verdict:
    """Whether the numbers of ``order`` fall strictly in each line that has all of them.

    Each number is compared with the next one. The verdict's value counts the lines in
    which the numbers fall, settled or not.
    """
    expected = " > ".join(claim.order)
    questions, falling, judged = [], 0, 0
    for line in _lines(claim, table, numbers, claim.order):
        if len(line.numbers) < len(claim.order):
            continue
        judged += 1
        values = [line.numbers[label].value for label in claim.order]
        falling += all(high > low for high, low in pairwise(values))
        for high, low in pairwise(claim.order):
            questions.append(_compare(line, high, low, _above))
    if not judged:
        return _nothing(expected)
    return _conclude(questions, f"{falling} of {judged}", expected)


def judge_argmax(claim: Claim, table: Table, numbers: _Noted) -> Verdict:
    """Whether the expected label is highest, in each line with at least two numbers.

    It is compared with every other label. Two equal numbers can both be highest. A line
    without a number for the expected label cannot be judged.
    """
    labels = table.row_labels if claim.over == "row" else table.column_labels
    questions, winners, wanted, remarks = [], [], [], []
    for line in _lines(claim, table, numbers, labels):
        expected = _expected_winner(claim, line, numbers)
        if len(line.numbers) < 2 or expected is None:
            continue
        if expected not in line.numbers:
            remarks.append(f"{line.name} has no number of {expected}")
            continue
        by_rank = sorted(
            line.numbers,
            key=lambda label: (line.numbers[label].value, label == expected),
        )
        winners.append(by_rank[-1])
        wanted.append(expected)
        for label in reversed(by_rank):
            if label != expected:
                questions.append(_compare(line, expected, label, _not_below))
    if not winners:
        return _nothing(note=_join(remarks) or "no numbers")
    value = _write_winners(winners, wanted)
    return _conclude(questions, value, ", ".join(_merged(wanted)), remarks)


def _not_below(number: Number, limit: float) -> Answer:
    return _within(number, limit, inf)


def _compare(
    line: Line, high: str, low: str, ask: Callable[[Number, float], Answer]
) -> Question:
    """Compares two numbers in a line: by their quotient if positive, or by difference.

    Exact numbers are compared by their difference, which is free of rounding errors.
    """
    first, second = line.numbers[high], line.numbers[low]
    are_exact = first.is_exact and second.is_exact
    if are_exact or not (first.is_positive and second.is_positive):
        contrast, word, limit = subtract(first, second), "minus", 0.0
    else:
        contrast, word, limit = divide(first, second), "over", 1.0
    answer = ask(contrast, limit)
    are_equal = contrast.is_exact and abs(contrast.value - limit) < ROUNDING
    if answer == "yes" and are_equal and not are_exact:
        answer = "open"  # runs that are all equal prove nothing
    reason = f"{line.name}: {high} {first.value:.4g}, {low} {second.value:.4g}"
    if answer == "open":
        reason = f"{line.name}: {high} {word} {low} {write_number(contrast)}"
    return Question(answer, reason)


def _lines(
    claim: Claim, table: Table, numbers: _Noted, labels: Sequence[str]
) -> Iterator[Line]:
    """The columns to judge for a claim over "row", or the rows for one over "column".

    With ``by``, each number is divided by the one in row or column ``by``.
    """
    is_by_row = claim.over == "row"
    every_line = table.column_labels if is_by_row else table.row_labels
    chosen = claim.column if is_by_row else claim.row
    if chosen is None or chosen == "*":
        names = every_line
    else:
        names = (chosen,) if isinstance(chosen, str) else chosen
    for name in names:
        found = {}
        for label in labels:
            cell = Cell(table.item, *((label, name) if is_by_row else (name, label)))
            number = _over_neighbour(claim, cell, numbers)
            if number is not None:
                found[label] = number
        yield Line(name, ("*", name) if is_by_row else (name, "*"), found)


def _over_neighbour(claim: Claim, cell: Cell, numbers: _Noted) -> Number | None:
    number = numbers.number(cell)
    if not claim.by:
        return number
    label = str(claim.by)
    is_row = claim.over == "column"
    below = cell._replace(row=label) if is_row else cell._replace(column=label)
    other = numbers.number(below)
    if number is None or other is None or other.value == 0:
        return None
    return divide(number, other)


def _expected_winner(claim: Claim, line: Line, numbers: _Noted) -> str | None:
    """The label that should be highest; None if it depends on an unknown c."""
    expected = _expected_of(claim, line.name)
    if expected != "round(c)":
        return str(expected)
    c = numbers.cost_ratio(*line.anywhere)
    return None if c is None else str(round(c))


def _write_winners(winners: Sequence[str], expected: Sequence[str]) -> str:
    """Each line's highest label, or counts of them if all lines expect the same label.

    "PEARL in 6 of 7, Speculative Decoding in 1", or "3, 5, 4".
    """
    counts = Counter(winners).most_common()
    if len(counts) == 1 or len(set(expected)) > 1:
        return ", ".join(_merged(winners))
    (first, count), *rest = counts
    words = [f"{first} in {count} of {len(winners)}"]
    return ", ".join(words + [f"{label} in {count}" for label, count in rest])


# -- ratios, ranges, equalities --------------------------------------------------------
class JudgedNumber(NamedTuple):
    """A number that a claim is about; ``cell`` is the one named by ``of``."""

    label: str
    cell: Cell
    number: Number


def judge_ratio(claim: Claim, table: Table, numbers: _Noted) -> Verdict:
    """Whether of / by (or of - by) is as expected, within a relative tolerance."""
    judged = numbers_of_claim(claim, table, numbers)
    wanted = [float(_expected_of(claim, each.label)) for each in judged]
    return _compare_with(claim, judged, wanted)


def judge_equal(claim: Claim, table: Table, numbers: _Noted) -> Verdict:
    """Whether of = by, or of = expected; lists are compared in order.

    If two cells are compared, the tolerance is relative to the number of ``by``, which
    is treated as exact.
    """
    judged = _judged_numbers(claim, table, numbers)
    if not claim.by:
        wanted = claim.expected
        if not isinstance(wanted, list | tuple):
            return _compare_with(claim, judged, [wanted] * len(judged))
        if judged and len(judged) != len(wanted):
            value = _list_values([each.number.value for each in judged])
            note = f"{len(judged)} numbers, {len(wanted)} expected"
            return Verdict("no", value, _list_values(wanted), note)
        return _compare_with(claim, judged, wanted)

    cells = _expand(cast(Reference, claim.of), table)
    others = _expand(claim.by, table)
    _check_pairs(claim, cells, others)
    other_of = dict(zip(cells, others, strict=True))
    both, limits = [], []
    for each in judged:
        other = numbers.number(other_of[each.cell])
        if other is not None:
            both.append(each._replace(number=subtract(each.number, other)))
            limits.append((each.number.value, other.value))
    questions = []
    for each, (_, wanted_value) in zip(both, limits, strict=True):
        tolerance = claim.within * abs(wanted_value) + ROUNDING
        questions.append(_ask(each, -tolerance, tolerance, "difference "))
    if not both:
        return _nothing()
    return _conclude(
        questions,
        _list_values([value for value, _ in limits]),
        _list_values(_merged([wanted for _, wanted in limits])),
    )


def judge_range(claim: Claim, table: Table, numbers: _Noted) -> Verdict:
    """Whether low <= of / by (or of - by) <= high.

    With ``decimals`` the values are compared as if rounded, which widens the range by
    half a unit of the last decimal. A ``high`` of "c" is the number's cost ratio, taken
    as exact; a number with unknown c cannot be judged.
    """
    low = cast(float, claim.low)
    ends = [f"{low:g}", claim.high if claim.high == "c" else f"{claim.high:g}"]
    expected = " .. ".join(dict.fromkeys(ends))
    judged = numbers_of_claim(claim, table, numbers)
    questions, values = [], []
    half_unit = 0.0 if claim.decimals is None else 0.5 * 10.0**-claim.decimals
    # Halves round up: into the range at the lower end, out of it at the upper end.
    below, above = half_unit + ROUNDING, half_unit - ROUNDING if half_unit else ROUNDING
    for each in judged:
        high = claim.high
        if isinstance(high, str):
            high = numbers.cost_ratio(each.cell.row, each.cell.column)
        if high is not None:
            questions.append(_ask(each, low - below, high + above))
            values.append(each.number.value)
    if not questions:
        return _nothing(expected, "c is not known" if judged else "no numbers")
    return _conclude(questions, _list_values(values), expected)


JUDGES: dict[str, Callable[[Claim, Table, _Noted], Verdict]] = {
    "order": judge_order,
    "argmax": judge_argmax,
    "ratio": judge_ratio,
    "range": judge_range,
    "equal": judge_equal,
}


def numbers_of_claim(
    claim: Claim, table: Table, numbers: _Noted | Numbers
) -> list[JudgedNumber]:
    """The numbers on which a ratio or a range is judged: all, or the one picked.

    The interval does not account for the picking: the largest of several tends to be
    too large.
    """
    judged = _judged_numbers(claim, table, numbers)
    if not judged or claim.reduce is None:
        return judged
    pick = max if claim.reduce == "max" else min
    return [pick(judged, key=lambda each: each.number.value)]


def _compare_with(
    claim: Claim, judged: Sequence[JudgedNumber], wanted: Sequence[float]
) -> Verdict:
    """Compares each number with its expected value, within the claim's tolerance."""
    if not judged:
        return _nothing()
    questions = []
    for each, value in zip(judged, wanted, strict=True):
        tolerance = claim.within * abs(value) + ROUNDING
        questions.append(_ask(each, value - tolerance, value + tolerance))
    values = [each.number.value for each in judged]
    return _conclude(questions, _list_values(values), _list_values(_merged(wanted)))


def _ask(each: JudgedNumber, low: float, high: float, what: str = "") -> Question:
    """Whether a number lies in a range."""
    ends = dict.fromkeys(f"{round(end, 8) + 0.0:.4g}" for end in (low, high))
    answer = _within(each.number, low, high)
    against = "outside" if answer == "no" else "against"
    number = f"{what}{write_number(each.number)}"
    return Question(answer, f"{each.label}: {number} {against} {' .. '.join(ends)}")


def _judged_numbers(
    claim: Claim, table: Table, numbers: _Noted | Numbers
) -> list[JudgedNumber]:
    """of / by, of - by, or just of, for each cell that has the numbers for it."""
    cells, labels = _cells_and_labels(cast(Reference, claim.of), claim, table)
    by = claim.by
    join: Callable[[Number, Number], Number] = divide
    if isinstance(by, tuple) and by[0] == MINUS:
        by, join = (by[1] if claim.over else by[1:]), subtract
    if by is None or claim.kind == "equal":
        judged = []
        for label, cell in zip(labels, cells, strict=True):
            number = numbers.number(cell)
            if number is not None:
                judged.append(JudgedNumber(label, cell, number))
        return judged

    bottoms, _ = _cells_and_labels(by, claim, table)
    _check_pairs(claim, cells, bottoms)
    judged = []
    for label, top_cell, bottom_cell in zip(labels, cells, bottoms, strict=True):
        top, bottom = numbers.number(top_cell), numbers.number(bottom_cell)
        if top is None or bottom is None or (join is divide and bottom.value == 0):
            continue
        judged.append(JudgedNumber(label, top_cell, join(top, bottom)))
    return judged


def _cells_and_labels(
    reference: Reference, claim: Claim, table: Table
) -> tuple[list[Cell], list[str]]:
    """The cells of ``of`` or ``by``, and a label for each.

    Over "columns" the reference is a row, and its cells are labelled by column; over
    "rows" it is a column. Otherwise it names the cells.
    """
    if claim.over == "columns":
        columns = list(table.column_labels)
        return [Cell(table.item, str(reference), column) for column in columns], columns
    if claim.over == "rows":
        rows = list(table.row_labels)
        return [Cell(table.item, row, str(reference)) for row in rows], rows
    cells = _expand(reference, table)
    labels = []
    for cell in cells:
        where = "" if cell.item == table.item else f"{cell.item}: "
        labels.append(f"{where}{cell.row} / {cell.column}")
    return cells, labels


def _expand(reference: Reference, table: Table) -> list[Cell]:
    """The cells that [row, column] or [item, row, column] names; "*" names all."""
    item = table.item if len(reference) == 2 else reference[0]
    row, column = reference[-2], reference[-1]
    referred = table.paper.table(item)
    rows = referred.row_labels if row == "*" else (row,)
    columns = referred.column_labels if column == "*" else (column,)
    return [Cell(item, one, other) for one in rows for other in columns]


def _check_pairs(claim: Claim, tops: list[Cell], bottoms: list[Cell]) -> None:
    if len(tops) != len(bottoms):
        raise BadValue(
            f"claim {claim.id!r}: of names {len(tops)} cells and by {len(bottoms)}; "
            "they are compared in pairs, so give equally many"
        )


def _expected_of(claim: Claim, label: str) -> str | float:
    """The expected value for one line or number; all may share it."""
    if not isinstance(claim.expected, dict):
        return cast("str | float", claim.expected)
    if label not in claim.expected:
        raise BadValue(
            f"claim {claim.id!r} has no expected value for {label!r}; it has: "
            f"{', '.join(claim.expected)}"
        )
    return cast("str | float", claim.expected[label])


# -- in words --------------------------------------------------------------------------
def write_number(number: Number) -> str:
    """A number, with its 95 % interval unless it is exact."""
    if number.is_exact:
        return f"{number.value:.4g}"
    if number.n == 1:
        return f"{number.value:.4g} (one prompt settles nothing)"
    low, high = number.interval
    return f"{number.value:.4g} (95 %: {low:.4g} .. {high:.4g}, n {number.n})"


def _join(reasons: Sequence[str]) -> str:
    """All reasons, or the first three and how many more there are."""
    left_out = len(reasons) - FIRST_REASONS
    if left_out <= 1:
        return "; ".join(reasons)
    return "; ".join([*reasons[:FIRST_REASONS], f"and {left_out} more"])


def _list_values(values: Sequence[float]) -> str:
    """The numbers, or their range if there are many."""
    if len(values) > FEW:
        return f"{min(values):.4g} .. {max(values):.4g}"
    return ", ".join(f"{value:.4g}" for value in values)


def _merged(values: Sequence[T]) -> Sequence[T]:
    """The one value if all are equal, else all of them."""
    return values[:1] if len(set(values)) == 1 else values
