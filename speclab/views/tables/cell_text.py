"""Numbers of tables as text: values, differences to print, intervals.

Knows no markup.
"""

from __future__ import annotations

from math import isfinite

from speclab.papers.ledger import LedgerLine
from speclib.drawing.numbers import DASH


def write_number(value: float, decimals: int) -> str:
    """``value`` with so many decimals, a dash where it is not finite."""
    if not isfinite(value):
        return DASH
    return f"{value:z.{decimals}f}"  # z: no minus before a zero


def write_difference(share: float) -> str:
    """A relative difference as "+4.2 %", or "−19 %" in whole per cent from ten on.

    Empty where it is not finite.
    """
    if not isfinite(share):
        return ""
    decimals = 1 if abs(share) < 0.0995 else 0
    text = f"{100 * share:+.{decimals}f}"
    if float(text) == 0:
        return "0 %"
    return text.replace("-", "\N{MINUS SIGN}") + " %"


def write_interval(line: LedgerLine, scale: float, printed_decimals: int) -> str:
    """The 95 % interval of a line, as "1.91 .. 1.98"; empty where it has none.

    ``scale`` leads from the ledger's unit to the one that is shown.
    """
    if line.low is None or line.high is None:
        return ""
    decimals = decimals_of(line, printed_decimals)
    low = write_number(line.low * scale, decimals)
    high = write_number(line.high * scale, decimals)
    return f"{low} .. {high}"


def decimals_of(line: LedgerLine, printed_decimals: int) -> int:
    """As many decimals as the print has.

    A ratio of ours gets two where the print rounds to a whole number, unless it is a
    whole number, too.
    """
    is_own_ratio = line.kind != "paper" and line.unit == "x"
    if printed_decimals or not is_own_ratio or line.value is None:
        return printed_decimals
    is_whole = isfinite(line.value) and line.value == round(line.value)
    return printed_decimals if is_whole else 2
