"""Claims with their verdicts, and what is counted of a paper.

Verdicts on our own checks of a paper are counted apart from those on its claims. Knows
no markup.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
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


# The heads of the summary: that of the kind, and that of each count by its name.
KIND_HEAD = "kind"
COUNT_HEADS = {
    "cells": "cells",
    "yes": "the paper's claims that hold",
    "no": "that do not",
    "open": "that are open",
    "not judged": "not judged",
    "own yes": "our own checks that hold",
    "own no": "that do not",
    "own open": "that are open",
}


def is_own(claim: Claim) -> bool:
    """Whether a claim is our check of the paper, and not the paper's word."""
    return claim.source.startswith(("audit", "ours"))


def count(results: Mapping[str, TableResult]) -> dict[str, dict[str, int]]:
    """The counts of ``COUNT_HEADS`` by kind, of each that has numbers or verdicts.

    Second numbers and verdicts, over the same devices, are counted apart, after their
    kind.
    """
    counts_by_head = {}
    for kind in KINDS:
        first, second = _count_kind(results, kind)
        counts_by_head[kind] = first
        counts_by_head[kind + OVER_SAME_DEVICES] = second
    return {
        head: counts for head, counts in counts_by_head.items() if any(counts.values())
    }


def _count_kind(
    results: Mapping[str, TableResult], kind: str
) -> tuple[dict[str, int], dict[str, int]]:
    """The counts of one kind, and of its second numbers and verdicts."""
    first = dict.fromkeys(COUNT_HEADS, 0)
    second = dict.fromkeys(COUNT_HEADS, 0)
    for result in results.values():
        own_checks = {claim.id for claim in result.table.claims if is_own(claim)}

        first["cells"] += len(result.values.get(kind, {}))
        _count_verdicts(result.claims, kind, own_checks, first)

        kinds_of_second = [
            kind_of_cell for *_, kind_of_cell in result.over_same_devices
        ]
        second["cells"] += kinds_of_second.count(kind)
        _count_verdicts(result.claims_over_same_devices, kind, own_checks, second)
    return first, second


def _count_verdicts(
    verdicts: Iterable[VerdictLine],
    kind: str,
    own_checks: Container[str],
    counts: dict[str, int],
) -> None:
    """Adds the verdicts on one kind of number to ``counts``."""
    for verdict in verdicts:
        if verdict.kind != kind:
            continue
        is_judged = verdict.holds != "not judged"
        if is_judged and verdict.claim in own_checks:
            counts[f"own {verdict.holds}"] += 1
        else:
            counts[verdict.holds] += 1
