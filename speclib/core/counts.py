"""Whole numbers that follow from c, the cost ratio t_target / t_draft."""

from __future__ import annotations

from math import ceil


def nearest_count(c: float) -> int:
    """round(c), at least 1: the draft length that PEARL's Theorem 1 takes from c."""
    return max(1, round(c))


def rounds_up(ratio: float) -> int:
    """ceil(ratio), at least 1; a last digit that rounding added does not count."""
    return max(1, ceil(ratio - 1e-9))
