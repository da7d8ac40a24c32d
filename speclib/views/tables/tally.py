"""What is counted of a paper: its numbers, and the verdicts on its claims.

Verdicts on our own checks of a paper are counted apart from those on its claims. Knows
no markup.
"""

from __future__ import annotations

from collections.abc import Mapping

from speclib.papers.schema import KINDS, Claim
from speclib.papers.table_result import TableResult

# The heads of the summary: of the kind, and of each count by its name.
KIND_HEAD = "kind"
COUNT_HEADS = {
    "cells": "cells",
    "yes": "the paper's claims that hold",
    "no": "that do not",
    "open": "that are open",
    "n/a": "not judged",
    "own yes": "our own checks that hold",
    "own no": "that do not",
    "own open": "that are open",
}


def is_own(claim: Claim) -> bool:
    """Whether a claim is our check of the paper, and not the paper's word."""
    return claim.source.startswith(("audit", "ours"))


def count(results: Mapping[str, TableResult]) -> dict[str, dict[str, int]]:
    """Of each kind that has numbers or verdicts, the counts of ``COUNT_HEADS``."""
    counts_by_kind = {}
    for kind in KINDS:
        counts = dict.fromkeys(COUNT_HEADS, 0)
        for result in results.values():
            counts["cells"] += len(result.values.get(kind, {}))
            _count_verdicts(result, kind, counts)
        if any(counts.values()):
            counts_by_kind[kind] = counts
    return counts_by_kind


def _count_verdicts(result: TableResult, kind: str, counts: dict[str, int]) -> None:
    """Adds the verdicts on one kind of a table's numbers to ``counts``."""
    own_checks = {claim.id for claim in result.table.claims if is_own(claim)}
    for verdict in result.claims:
        if verdict.kind != kind:
            continue
        is_judged = verdict.holds != "n/a"
        if is_judged and verdict.claim in own_checks:
            counts[f"own {verdict.holds}"] += 1
        else:
            counts[verdict.holds] += 1
