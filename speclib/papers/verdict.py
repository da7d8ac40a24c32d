"""The verdict on a claim, and how its numbers and reasons are put into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

FEW = 8  # so many numbers are listed one by one; more are given as their range
FIRST_REASONS = 3  # so many are given where there are more than four


class Verdict(NamedTuple):
    """Whether a claim holds, what was found and what was expected.

    ``holds`` is None where there is nothing to judge; ``note`` says why it does not
    hold, or how close it was.
    """

    holds: bool | None
    value: str
    expected: str
    note: str = ""


def no_numbers(expected: str = "") -> Verdict:
    """The verdict on a claim about numbers of which there are none."""
    return Verdict(None, "", expected, "no numbers")


def join_reasons(reasons: Sequence[str], between: str = "; ") -> str:
    """All reasons, or the first three and how many more there are."""
    left_out = len(reasons) - FIRST_REASONS
    if left_out <= 1:
        return between.join(reasons)
    return between.join([*reasons[:FIRST_REASONS], f"and {left_out} more"])


def list_values(numbers: Iterable[float]) -> str:
    """The numbers, or the range of many."""
    values = list(numbers)
    if len(values) > FEW:
        return f"{min(values):.4g} .. {max(values):.4g}"
    return ", ".join(f"{value:.4g}" for value in values)


def merge_equal(values: Sequence[T]) -> Sequence[T]:
    """The one value that all share, or all of them."""
    if len(set(values)) == 1:
        return values[:1]
    return values
