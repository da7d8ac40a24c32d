"""Verdicts that the papers' tables have already: an audit judges nothing twice.

On the print a claim is judged here and now, as ``make reproduce`` does. On other kinds
of number its verdict is the one in ``reports/claims.csv``, which the last run of
``make reproduce`` left.
"""

from __future__ import annotations

from functools import cache

from speclab.papers.fill import Known, TableNumbers, fill
from speclab.papers.ledger import Cell, VerdictLine, read_claims
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import Number
from speclab.papers.paper_schema import Claim
from speclab.papers.table_result import TableResult
from speclab.papers.verdicts import verdict
from speclib import paths
from speclib.errors import unknown_name

from .printed import name_cell
from .quantity import digits


def claim_of(paper: str, item: str, claim: str) -> Claim:
    """A claim of a table. Raises UnknownName listing the table's, if it has none."""
    table = load_paper(paper).table(item)
    for known in table.claims:
        if known.id == claim:
            return known
    problem = f"{table.file} has no claim {claim!r}"
    raise unknown_name(problem, claim, [known.id for known in table.claims])


def verdict_on(paper: str, item: str, claim: str, kind: str) -> VerdictLine | None:
    """The verdict on a claim for one kind of number; None where there is none yet."""
    claim_of(paper, item, claim)
    is_print = kind == "paper"
    rows = _filled_from_the_print(paper, item).claims if is_print else _last_verdicts()
    for row in rows:
        if (row.paper, row.item, row.claim, row.kind) == (paper, item, claim, kind):
            return row
    return None


def printed_numbers_of(paper: str, item: str, claim: str) -> list[str]:
    """The printed cells that a claim is judged on, as lines: a row of a table in each.

    The first column of a line is named with its row: "Table 2, PEARL (ours), German =
    2.48, French = 2.60".
    """
    result = _filled_from_the_print(paper, item)
    printed = _AskedFor(result)
    verdict(claim_of(paper, item, claim), result.table, printed)

    words_of_row: dict[tuple[str, str], list[str]] = {}
    for cell, number in printed.asked_for.items():
        words = words_of_row.setdefault((cell.item, cell.row), [])
        name = cell.column if words else name_cell(cell)
        words.append(f"{name} = {digits(number.value, 6)}")
    return [", ".join(words) for words in words_of_row.values()]


class _AskedFor(TableNumbers):
    """A table's printed numbers, which notes those that a claim asks for."""

    def __init__(self, result: TableResult):
        super().__init__(result, "paper")
        self.asked_for: dict[Cell, Number] = {}

    def number(self, cell: Cell) -> Number | None:
        number = super().number(cell)
        if number is not None:
            self.asked_for[cell] = number
        return number


@cache
def _filled_from_the_print(paper: str, item: str) -> TableResult:
    """A table with its printed numbers alone."""
    return fill(load_paper(paper).table(item), [], Known.of_rows([]), "", kinds=())


def _last_verdicts() -> list[VerdictLine]:
    return read_claims(paths.REPORTS / "claims.csv")
