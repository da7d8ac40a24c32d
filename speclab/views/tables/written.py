"""Numbers as the pages of tables write them."""

from __future__ import annotations

from math import isfinite

from speclib.drawing.numbers import DASH

MINUS = "\N{MINUS SIGN}"


def write_number(value: float, decimals: int) -> str:
    """``value`` with ``decimals`` decimals; a dash if it is not finite."""
    if not isfinite(value):
        return DASH
    return f"{value:z.{decimals}f}".replace("-", MINUS)  # z: no minus before a zero


def write_percent(share: float) -> str:
    """A relative difference in whole per cent: "+4 %", "−19 %", "0 %"."""
    if not isfinite(share):
        return ""
    percent = round(100 * share)
    return f"{percent:+d} %".replace("-", MINUS) if percent else "0 %"


def write_range(values: list[float], decimals: int) -> str:
    """The smallest and the largest of several numbers: "1.19 to 1.32"."""
    low, high = write_number(min(values), decimals), write_number(max(values), decimals)
    return low if low == high else f"{low} to {high}"
