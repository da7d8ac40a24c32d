"""Cells that failed, gathered by their reason: one cause often fails many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Failure(NamedTuple):
    """A reason, and the names of the cells that failed for it."""

    reason: str
    cells: list[str]


def group_by_reason(errors: Mapping[str, str]) -> list[Failure]:
    """``errors``, reasons by the name of the cell, as one failure per reason."""
    cells_by_reason: dict[str, list[str]] = {}
    for cell, reason in errors.items():
        cells_by_reason.setdefault(reason, []).append(cell)
    return [Failure(reason, cells) for reason, cells in cells_by_reason.items()]
