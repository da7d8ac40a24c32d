"""Claims judged: whether what a paper says of its numbers holds among others.

A claim is about an order, a maximum, a ratio, a range or an equality. There is one
judge for every kind of number. What a number is, and where it comes from, is not its
business.

A verdict is yes, no or a tie only where the 95 % interval of the number settles it (see
``estimates`` and ``findings``). Otherwise it is open, and says how many requests
would settle it. It is n/a where there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from speclib.errors import BadValue

from .claim_numbers import (
    NotedNumbers,
    Numbers,
    NumbersOverSameDevices,
    TableNumbers,
)
from .comparisons import MINUS, judge_equal, judge_range, judge_ratio
from .ledger import Cell, VerdictLine
from .orders import judge_argmax, judge_order
from .paper_schema import Claim, Table
from .table_result import TIMED_KINDS, Key, NotSettled, TableResult, Way
from .verdict import Lack, Verdict, join_reasons

JUDGES = {
    "order": judge_order,
    "argmax": judge_argmax,
    "ratio": judge_ratio,
    "range": judge_range,
    "equal": judge_equal,
}


def judge_in_result(claim: Claim, result: TableResult, kind: str) -> VerdictLine:
    """The verdict on a claim for one kind of a table's numbers.

    It is n/a where the claim asks for a cell during which other programs kept the
    machine busy, and open where it asks for one that has not been run yet.
    """
    numbers = NotedNumbers(TableNumbers(result, kind))
    verdict = _verdict(claim, result.table, numbers)
    line = _line(claim, result.table, kind, verdict)
    line = _with_what_is_missing(line, result, numbers.asked, result.left_out)
    _note_open_cells(line, verdict.lacks, result, numbers.asked)
    return line


def judge_over_same_devices(
    claim: Claim, result: TableResult, kind: str
) -> VerdictLine | None:
    """The verdict on a claim if a speed-up is one over the same devices.

    None where the claim asks for no speed-up that has such a number, or will have one,
    or where some of what it asks for has none, as a printed number. Open where plain
    decoding on all devices was not run yet, or not while the machine was quiet.
    """
    numbers = NotedNumbers(NumbersOverSameDevices(result, kind))
    verdict = _verdict(claim, result.table, numbers)
    line = _line(claim, result.table, kind, verdict)
    has_number, lacks_number = False, False
    for cell in numbers.asked:
        key = cell.row, cell.column, kind
        if cell.item != result.table.item:
            return None
        if key in result.over_same_devices or key in result.lacks_plain:
            has_number = True
        elif result.estimate(*key) is not None:
            lacks_number = True
    if lacks_number or not has_number:
        return None
    missing = result.left_out | result.lacks_plain
    line = _with_what_is_missing(line, result, numbers.asked, missing)
    _note_open_cells(line, verdict.lacks, result, numbers.asked)
    return line


def _note_open_cells(
    line: VerdictLine,
    lacks: Sequence[Lack],
    result: TableResult,
    asked: Iterable[Cell],
) -> None:
    """Notes in ``result`` which of its cells a claim asked for that is not settled.

    Those that were not run, or while the machine was busy, and may find it quiet; else
    those of its open questions.
    """
    all_cells = _keys_of(asked, result, line.kind)
    missing = result.disturbed | result.left_out | result.lacks_plain
    not_judged = all_cells & missing
    if not_judged:
        result.not_settled.append(NotSettled(all_cells, [Way(not_judged)]))
    if line.holds != "open" or not lacks:
        return

    ways: list[Way[Key]] = []
    for lack in lacks:
        timed = _keys_of(lack.timed, result, line.kind)
        replayed = _keys_of(lack.replayed, result, line.kind)
        ways.append(Way(timed, replayed, lack.requests))
    if line.kind not in TIMED_KINDS:  # its cells are run to their end in one step
        ways = [Way(set().union(*[way.to_time for way in ways]))]
    result.not_settled.append(NotSettled(all_cells, ways))


def _keys_of(cells: Iterable[Cell], result: TableResult, kind: str) -> set[Key]:
    """Those ``cells`` that are the table's own, by row, column and kind."""
    own = [cell for cell in cells if cell.item == result.table.item]
    return {(cell.row, cell.column, kind) for cell in own}


def _with_what_is_missing(
    line: VerdictLine,
    result: TableResult,
    asked: Sequence[Cell],
    left_out: Container[tuple[str, str, str]],
) -> VerdictLine:
    """The verdict, unless it asked for cells that are disturbed or ``left_out``."""
    disturbed_cells = _name_those_in(result.disturbed, asked, result, line.kind)
    left_out_cells = _name_those_in(left_out, asked, result, line.kind)
    left_out_cells = [cell for cell in left_out_cells if cell not in disturbed_cells]
    notes = []
    if disturbed_cells:
        cells = join_reasons(disturbed_cells)
        notes.append(f"not judged: other programs kept the machine busy during {cells}")
    if left_out_cells:
        notes.append(f"not run yet: {join_reasons(left_out_cells)}")
    if not notes:
        return line
    holds = "n/a" if disturbed_cells else "open"
    return line._replace(holds=holds, note="; ".join(notes))


def _name_those_in(
    cell_keys: Container[tuple[str, str, str]],
    asked: Iterable[Cell],
    result: TableResult,
    kind: str,
) -> list[str]:
    """The cells that were asked for and are among ``cell_keys``, as "row / column"."""
    names = []
    for cell in asked:
        is_own = cell.item == result.table.item
        if is_own and (cell.row, cell.column, kind) in cell_keys:
            names.append(f"{cell.row} / {cell.column}")
    return names


def judge(claim: Claim, table: Table, numbers: Numbers) -> VerdictLine:
    """The verdict on a claim of ``table`` for one kind of number.

    Raises SpeclibError naming the claim, if its fields do not fit its kind.
    """
    return _line(claim, table, numbers.kind, _verdict(claim, table, numbers))


def _verdict(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    check_claim(claim)
    if numbers.kind in claim.kinds:
        return JUDGES[claim.kind](claim, table, numbers)
    return Verdict("n/a", "", "", "a claim about the print")


def _line(claim: Claim, table: Table, kind: str, verdict: Verdict) -> VerdictLine:
    """The verdict as the reports have it."""
    return VerdictLine(
        paper=table.paper.key,
        item=table.item,
        claim=claim.id,
        kind=kind,
        holds=verdict.holds,
        value=verdict.value,
        expected=verdict.expected,
        note=verdict.note,
    )


# -- do a claim's fields fit its kind? -------------------------------------------------
def check_claim(claim: Claim) -> None:
    """Raises SpeclibError naming the claim and the field that does not fit its kind."""
    if isinstance(claim.by, tuple) and MINUS in claim.by:
        _check_difference(claim, claim.by)
    if claim.kind in ("order", "argmax"):
        _check_labels(claim)
    else:
        _check_references(claim)
        _check_expected(claim)


def _check_difference(claim: Claim, by: tuple[str, ...]) -> None:
    """``by`` must be ["minus", what is taken from ``of``]."""
    lengths = (2,) if claim.over else (3, 4)
    is_difference = (
        claim.kind in ("ratio", "range")
        and by[0] == MINUS
        and by.count(MINUS) == 1
        and len(by) in lengths
    )
    if not is_difference:
        raise BadValue(
            f"claim {claim.id!r}: by = {list(by)} is no difference; of a "
            'ratio or range it is ["minus", label] with over, else ["minus", '
            "row, column]; it is a difference or a quotient, not both"
        )


def _check_labels(claim: Claim) -> None:
    if claim.over not in ("row", "column"):
        _refuse(claim, "over", 'give "row" or "column"')
    if claim.by is not None and not isinstance(claim.by, str):
        _refuse(claim, "by", "give one label")
    if claim.kind == "order" and len(claim.order) < 2:
        _refuse(claim, "order", "give two labels or more, highest first")
    if claim.kind == "argmax" and not isinstance(claim.expected, str | dict):
        _refuse(claim, "expected", "give a label, or a table of them by line")


def _check_references(claim: Claim) -> None:
    """A reference must be a label with ``over``, and without it name its cells."""
    if claim.over in ("row", "column"):
        _refuse(claim, "over", 'give "rows" or "columns", or leave it out')
    if claim.over and claim.kind == "equal":
        _refuse(claim, "over", "leave it out: `of` names the cells that are compared")

    if claim.of is None or not _is_reference(claim.of, claim.over):
        _refuse(claim, "of", _reference_form(claim))
    is_difference = isinstance(claim.by, tuple) and MINUS in claim.by
    if claim.by is None or is_difference:
        return
    if not _is_reference(claim.by, claim.over):
        _refuse(claim, "by", _reference_form(claim))


def _is_reference(reference: str | tuple[str, ...], over: str | None) -> bool:
    if over:
        return isinstance(reference, str)
    return isinstance(reference, tuple) and len(reference) in (2, 3)


def _reference_form(claim: Claim) -> str:
    if claim.over:
        return f"with over = {claim.over!r} give one label"
    return "give [row, column] or [item, row, column]"


def _check_expected(claim: Claim) -> None:
    if claim.kind == "range":
        if claim.low is None:
            _refuse(claim, "low", "give a number")
        if claim.high is None or isinstance(claim.high, str) and claim.high != "c":
            _refuse(claim, "high", 'give a number or "c"')
        return
    if claim.kind == "equal" and claim.by:
        return

    numbers = [claim.expected]
    if claim.kind == "ratio" and isinstance(claim.expected, dict):
        numbers = list(claim.expected.values())
    if claim.kind == "equal" and isinstance(claim.expected, list | tuple):
        numbers = list(claim.expected)
    for number in numbers:
        if not isinstance(number, int | float):
            _refuse(claim, "expected", "give a number")


def _refuse(claim: Claim, field: str, help: str) -> None:
    value = getattr(claim, field)
    shown = list(value) if isinstance(value, tuple) else value
    raise BadValue(
        f"claim {claim.id!r} of kind {claim.kind!r}: {field} is {shown!r}; {help}"
    )
