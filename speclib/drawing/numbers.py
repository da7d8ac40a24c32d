"""Writes numbers for a picture or a summary: rounded, and with their unit."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

DASH = "–"  # written for a missing value


class Unit(NamedTuple):
    """A unit of time."""

    name: str
    per_second: float


MILLISECONDS = Unit("ms", 1e3)
SECONDS = Unit("s", 1.0)


def number(value: float, digits: int = 3) -> str:
    """``value`` with ``digits`` significant digits, or a dash if it is not finite.

    A value below 1 gets ``digits - 1`` decimals, so it has fewer significant digits.
    """
    if not isfinite(value):
        return DASH

    # The exponent of the rounded value: 9.996 is rounded to 10.0, not to 10.00.
    mantissa_and_exponent = f"{value:.{digits - 1}e}"
    exponent = int(mantissa_and_exponent.partition("e")[2])
    decimals = max(0, digits - 1 - max(exponent, 0))
    return f"{value:.{decimals}f}"


def percent(share: float) -> str:
    """A share as a percentage, "63 %", or a dash if it is not finite."""
    if not isfinite(share):
        return DASH
    return f"{round(100 * share)} %"


def duration(seconds: float, unit: Unit) -> str:
    """``seconds`` in ``unit``, with four significant digits: "12.34 ms"."""
    return f"{number(seconds * unit.per_second, 4)} {unit.name}"
