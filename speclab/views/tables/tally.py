"""What is counted of a paper: its numbers, and the verdicts on its claims.

Verdicts on our own checks of a paper are counted apart from those on its claims. Knows
no markup.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import KINDS, Claim
from speclab.papers.table_result import TableResult

from .verdicts import OVER_SAME_DEVICES

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
