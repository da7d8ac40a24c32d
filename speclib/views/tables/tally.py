"""What is counted of a paper: its cells, and verdicts on its claims apart from those on ours.

Reads filled tables; knows no markup.
"""

from __future__ import annotations

from .grid import ORDER

COUNTED = {
    "yes": (False, "yes"),
    "no": (False, "no"),
    "n/a": (False, "n/a"),  # of the paper's
    "own yes": (True, "yes"),
    "own no": (True, "no"),
}  # of our own checks of it
COUNTS = (
    "kind",
    "cells",
    "the paper's claims that hold",
    "that do not",
    "not judged",
    "our own checks that hold",
    "that do not",
)


def is_own(claim) -> bool:
    """Whether a claim of a table is our check of it, not the paper's word."""
    return claim.source.startswith(("audit", "ours"))


def counts(filled: dict) -> dict[str, dict[str, int]]:
    """Kind -> cells filled, verdicts as in ``COUNTED``."""
    own = {
        (f.table.item, c.id): is_own(c) for f in filled.values() for c in f.table.claims
    }
    found = {}
    for kind in ORDER:
        verdicts = [
            (own[c.item, c.claim] and c.holds != "n/a", c.holds)
            for f in filled.values()
            for c in f.claims
            if c.kind == kind
        ]
        cells = sum(len(f.values.get(kind, {})) for f in filled.values())
        if cells:
            found[kind] = {"cells": cells} | {
                name: verdicts.count(one) for name, one in COUNTED.items()
            }
    return found
