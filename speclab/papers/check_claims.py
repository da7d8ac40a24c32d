"""Checks that a claim's fields fit its kind."""

from __future__ import annotations

from speclib.errors import BadValue

from .paper_schema import Claim

MINUS = "minus"  # first in ``by``: the claim is on a difference, not a quotient


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
    """``by`` must be ["minus", reference]; the reference is subtracted from ``of``."""
    lengths = (2,) if claim.over else (3, 4)
    is_difference = (
        claim.kind in ("ratio", "range")
        and by[0] == MINUS
        and by.count(MINUS) == 1
        and len(by) in lengths
    )
    if not is_difference:
        raise BadValue(
            f"claim {claim.id!r}: by = {list(by)} is not a difference; for a ratio or "
            'range give ["minus", label] with over, else ["minus", row, column]; '
            "it is a difference or a quotient, not both"
        )


def _check_labels(claim: Claim) -> None:
    if claim.over not in ("row", "column"):
        _refuse(claim, "over", 'give "row" or "column"')
    if claim.by is not None and not isinstance(claim.by, str):
        _refuse(claim, "by", "give one label")
    if claim.kind == "order" and len(claim.order) < 2:
        _refuse(claim, "order", "give two labels or more, highest first")
    if claim.kind == "argmax" and not isinstance(claim.expected, str | dict):
        _refuse(claim, "expected", "give a label, or a table with a label per line")


def _check_references(claim: Claim) -> None:
    """With ``over`` a reference must be a label; without it, it must name its cells."""
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
