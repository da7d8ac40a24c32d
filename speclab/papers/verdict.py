"""The verdict on a claim, and how its numbers and reasons are put into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from .estimates import Estimate
from .ledger import Cell

T = TypeVar("T")

FEW = 8  # so many numbers are listed one by one; more are given as their range
FIRST_REASONS = 3  # so many are given where there are more than four

# "tie": the two numbers that it compares are as good as equal.
# "open": the requests that were run do not settle it, more of them would.
# "n/a": there is nothing to judge, or nothing that may be judged.
Answer = Literal["yes", "no", "tie", "open", "n/a"]


Cells = frozenset[Cell]
NO_CELLS: Cells = frozenset()


class Lack(NamedTuple):
    """Of what there would have to be more, for open questions to be settled.

    timed      cells of which more timed requests would help
    replayed   cells of which more replayed ones would
    requests   about so many timed ones of each would do, once enough are replayed;
               infinity: more than can be counted; 0: some
    """

    timed: Cells
    replayed: Cells = NO_CELLS
    requests: float = 0


class Verdict(NamedTuple):
    """Whether a claim holds, what was found and what was expected.

    ``note`` says why it does not hold, what is as good as equal, what is not settled
    and how many requests would settle it, or why it cannot be judged. Of an open one
    ``lacks`` says what would help to settle it: any one of these, that which takes
    least first.
    """

    holds: Answer
    value: str
    expected: str
    note: str = ""
    lacks: tuple[Lack, ...] = ()


def no_numbers(expected: str = "", note: str = "no numbers") -> Verdict:
    """The verdict on a claim about numbers of which there are none."""
    return Verdict("n/a", "", expected, note)


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


def write_estimate(estimate: Estimate) -> str:
    """A number with its 95 % interval, if it is not exact."""
    if estimate.is_exact:
        return f"{estimate.value:.4g}"
    if estimate.is_measured_once:
        return f"{estimate.value:.4g} (measured once)"
    low, high = estimate.interval
    return f"{estimate.value:.4g} (95 %: {low:.4g} .. {high:.4g})"


def merge_equal(values: Sequence[T]) -> Sequence[T]:
    """The one value that all share, or all of them."""
    if len(set(values)) == 1:
        return values[:1]
    return values
