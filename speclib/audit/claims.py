"""Verdicts that the papers' tables have already: an audit judges nothing twice.

On the print a claim is judged here and now, as ``make reproduce`` does. On other kinds
of number its verdict is the one in ``reports/claims.csv``, which the last run of
``make reproduce`` left.
"""

from __future__ import annotations

from functools import cache

from speclib import paths
from speclib.errors import unknown_name
from speclib.experiment.spec import FULL
from speclib.papers.fill import collect_all
from speclib.papers.ledger import ClaimRow, read_claims
from speclib.papers.load import load_paper
from speclib.papers.schema import Claim


def claim_of(paper: str, item: str, claim: str) -> Claim:
    """A claim of a table. Raises UnknownName listing the table's, if it has none."""
    table = load_paper(paper).table(item)
    for known in table.claims:
        if known.id == claim:
            return known
    problem = f"{table.file} has no claim {claim!r}"
    raise unknown_name(problem, claim, [known.id for known in table.claims])


def verdict_on(paper: str, item: str, claim: str, kind: str) -> ClaimRow | None:
    """The verdict on a claim for one kind of number; None where there is none yet."""
    claim_of(paper, item, claim)
    rows = _judged_on_the_print(paper, item) if kind == "paper" else _last_verdicts()
    for row in rows:
        if (row.paper, row.item, row.claim, row.kind) == (paper, item, claim, kind):
            return row
    return None


@cache
def _judged_on_the_print(paper: str, item: str) -> tuple[ClaimRow, ...]:
    """All claims of a table, judged by what is printed."""
    results = collect_all(load_paper(paper), FULL, {}, [item], kinds=())
    return tuple(results[item].claims)


def _last_verdicts() -> tuple[ClaimRow, ...]:
    path = paths.REPORTS / "claims.csv"
    return tuple(read_claims(path)) if path.is_file() else ()
