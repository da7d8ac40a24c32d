"""Claims with their verdicts, as lines of a table: what HTML and Markdown both show."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from speclib.papers.ledger import ClaimRow
from speclib.papers.schema import KINDS, Claim
from speclib.papers.table_result import TableResult


class Sign(NamedTuple):
    """How a verdict is written: a mark and words, and its class in the style sheet."""

    mark: str
    words: str
    css_class: str


SIGNS = {
    "yes": Sign("✓", "holds", "yes"),
    "no": Sign("✗", "does not hold", "no"),
    "open": Sign("◇", "open", "open"),
    "n/a": Sign("–", "n/a", "na"),
}


class ClaimLine(NamedTuple):
    """A claim, what it expects, and its verdict on each kind of number, if any."""

    claim: Claim
    expected: str
    verdicts: list[ClaimRow | None]


@dataclass(frozen=True)
class ClaimTable:
    """The claims of one table, with a column per kind of number."""

    kinds: list[str]
    lines: list[ClaimLine]


def list_claims(result: TableResult) -> ClaimTable | None:
    """The claims of a table with their verdicts; None where none was judged."""
    judged_kinds = {row.kind for row in result.claims}
    if not judged_kinds:
        return None

    kinds = [kind for kind in KINDS if kind in judged_kinds]
    verdicts = {(row.claim, row.kind): row for row in result.claims}
    lines = []
    for claim in result.table.claims:
        verdicts_of_claim = [verdicts.get((claim.id, kind)) for kind in kinds]
        expected = _first_expected(verdicts_of_claim)
        lines.append(ClaimLine(claim, expected, verdicts_of_claim))
    return ClaimTable(kinds, lines)


def _first_expected(verdicts: list[ClaimRow | None]) -> str:
    """What the first verdict that says so expects."""
    for verdict in verdicts:
        if verdict is not None and verdict.expected:
            return verdict.expected
    return ""


class JudgedClaim(NamedTuple):
    """One verdict with the claim that it is on."""

    verdict: ClaimRow
    claim: Claim


def select_verdicts(
    results: Mapping[str, TableResult], holds: str, kinds: Collection[str]
) -> list[JudgedClaim]:
    """Of all tables the verdicts that are ``holds`` on numbers of some kinds.

    ``holds`` is yes, no, open or n/a.
    """
    selected = []
    for result in results.values():
        claims = {claim.id: claim for claim in result.table.claims}
        for verdict in result.claims:
            if verdict.holds == holds and verdict.kind in kinds:
                selected.append(JudgedClaim(verdict, claims[verdict.claim]))
    return selected
