"""Verdicts that the papers' tables have already: an audit judges nothing twice.

On the print a claim is judged here and now, as ``make reproduce`` does. On other kinds
of number its verdict is the one in ``reports/claims.csv``, which the last run of
``make reproduce`` left.
"""

from __future__ import annotations

from functools import cache

from speclab.experiment.spec import FULL
from speclab.papers.claim_numbers import NotedNumbers, TableNumbers
from speclab.papers.claims import judge
from speclab.papers.fill import collect_all
from speclab.papers.ledger import Cell, VerdictLine, read_claims
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Claim
from speclab.papers.table_result import TableResult
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
    rows = _judged_on_the_print(paper, item) if kind == "paper" else _last_verdicts()
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
    numbers = NotedNumbers(TableNumbers(result, "paper"))
    judge(claim_of(paper, item, claim), result.table, numbers)

    by_row: dict[tuple[str, str], list[Cell]] = {}
    for cell in numbers.asked:
        by_row.setdefault((cell.item, cell.row), []).append(cell)

    lines = []
    for cells in by_row.values():
        words: list[str] = []
        for cell in cells:
            estimate = numbers.estimate(cell)
            if estimate is not None:
                name = cell.column if words else name_cell(cell)
                words.append(f"{name} = {digits(estimate.value, 6)}")
        if words:
            lines.append(", ".join(words))
    return lines


def _judged_on_the_print(paper: str, item: str) -> tuple[VerdictLine, ...]:
    """All claims of a table, judged by what is printed."""
    return tuple(_filled_from_the_print(paper, item).claims)


@cache
def _filled_from_the_print(paper: str, item: str) -> TableResult:
    """A table with its printed numbers alone."""
    return collect_all(load_paper(paper), FULL, {}, [item], kinds=())[item]


def _last_verdicts() -> tuple[VerdictLine, ...]:
    path = paths.REPORTS / "claims.csv"
    return tuple(read_claims(path)) if path.is_file() else ()
