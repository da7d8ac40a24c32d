"""Claims with their verdicts, as lines of a table: what HTML and Markdown both show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import KINDS, Claim
from speclab.papers.table_result import TableResult


class Sign(NamedTuple):
    """How a verdict is written: a mark and words, and its class in the style sheet."""

    mark: str
    words: str
    css_class: str


SIGNS = {
    "yes": Sign("✓", "holds", "yes"),
    "no": Sign("✗", "does not hold", "no"),
    "open": Sign("◇", "open", "open"),
    "not judged": Sign("–", "not judged", "na"),
}

# What the head of a second column says after its kind.
OVER_SAME_DEVICES = ", over the same devices"


class ClaimLine(NamedTuple):
    """A claim, what it expects, and its verdict on each kind of number, if any."""

    claim: Claim
    expected: str
    verdicts: list[VerdictLine | None]


@dataclass(frozen=True)
class ClaimTable:
    """The claims of one table, with a column per kind of number.

    A kind may have a second column, of its speed-ups over the same devices.
    """

    kinds: list[str]
    lines: list[ClaimLine]


def list_claims(result: TableResult) -> ClaimTable | None:
    """The claims of a table with their verdicts; None where none was judged."""
    columns = {kind: _by_claim(result.claims, kind) for kind in KINDS}
    for kind in KINDS:
        second = _by_claim(result.claims_over_same_devices, kind)
        columns[kind + OVER_SAME_DEVICES] = second
    judged = {head: verdicts for head, verdicts in columns.items() if verdicts}
    if not judged:
        return None

    lines = []
    for claim in result.table.claims:
        verdicts_of_claim = []
        for column in judged.values():
            verdict = column.get(claim.id)
            verdicts_of_claim.append(in_words(claim, verdict) if verdict else None)
        expected = _first_expected(verdicts_of_claim)
        lines.append(ClaimLine(claim, expected, verdicts_of_claim))
    return ClaimTable(list(judged), lines)


def _by_claim(verdicts: Iterable[VerdictLine], kind: str) -> dict[str, VerdictLine]:
    """The verdicts on one kind of number, by the id of the claim."""
    return {verdict.claim: verdict for verdict in verdicts if verdict.kind == kind}


def in_words(claim: Claim, verdict: VerdictLine) -> VerdictLine:
    """A verdict whose value says what is counted: "in order in 6 of 7".

    Its note does not repeat what its sign says.
    """
    if claim.kind == "order" and verdict.value:
        verdict = verdict._replace(value=f"in order in {verdict.value}")
    return verdict._replace(note=verdict.note.removeprefix(f"{verdict.holds}: "))


def _first_expected(verdicts: list[VerdictLine | None]) -> str:
    """What the first verdict that says so expects."""
    for verdict in verdicts:
        if verdict is not None and verdict.expected:
            return verdict.expected
    return ""
