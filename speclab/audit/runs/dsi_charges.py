"""DSI's rules of charge: Table 1 by the paper's listing and by its simulator.

The rules are worked out exactly (``theory.dsi_accounting``), so nothing here is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from speclab.audit.quantity import Kind, Quantities, Quantity
from speclab.papers.load_papers import load_paper
from speclab.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    Accounting,
    speedup,
    switched,
)
from speclib.errors import unknown_name

LATENCY_OF_TARGET, LATENCY_OF_DRAFTER = "Target Latency (ms)", "Drafter Latency (ms)"
ACCEPTANCE, PRINTED = "Acceptance Rate (%)", "Speedup DSI vs. SI"


class RowOfTable1:
    """A row of DSI's Table 1: what it prints, and what rules of charge make of it."""

    def __init__(self, row: str):
        paper = load_paper("dsi")
        numbers: Mapping[str, float] = {
            column: value
            for printed_row, column, value in paper.table("table-1").cells
            if printed_row == row
        }
        self.share = numbers[LATENCY_OF_DRAFTER] / numbers[LATENCY_OF_TARGET]
        self.alpha = numbers[ACCEPTANCE] / 100
        self.printed = numbers[PRINTED]
        self.tokens = paper.facts["protocol"]["simulated_tokens"]
        self.lookaheads = paper.facts["protocol"]["lookahead"]

    def dsi_over_si(self, rules: Accounting) -> float:
        """DSI over SI by these rules, each side at its best lookahead."""
        lookaheads = tuple(self.lookaheads)
        return _dsi_over_si(self.share, self.alpha, self.tokens, rules, lookaheads)


@cache
def _dsi_over_si(
    share: float,
    alpha: float,
    tokens: int,
    rules: Accounting,
    lookaheads: tuple[int, ...],
) -> float:
    return float(speedup(share, alpha, tokens, rules, lookaheads))


def rows_of_table_1() -> Iterator[RowOfTable1]:
    for row in load_paper("dsi").table("table-1").row_labels:
        yield RowOfTable1(row)


def dsi_over_si_by_rules(requests: int) -> Quantities:
    """The range of Table 1's column by the print, the listing and the simulator."""
    rows = list(rows_of_table_1())
    columns = {
        "printed": [row.printed for row in rows],
        "listing": [row.dsi_over_si(LISTING) for row in rows],
        "simulator": [row.dsi_over_si(SIMULATOR) for row in rows],
    }
    quantities = {}
    for name, values in columns.items():
        kind: Kind = "paper" if name == "printed" else "arithmetic"
        quantities[f"{name}, lowest"] = Quantity.exact(min(values), kind)
        quantities[f"{name}, highest"] = Quantity.exact(max(values), kind)

    above = [
        row for row in rows if row.printed - HALF_A_DIGIT > row.dsi_over_si(LISTING)
    ]
    quantities["rows printed above the listing"] = Quantity.exact(
        len(above), "arithmetic"
    )
    return quantities


HALF_A_DIGIT = 0.005  # of the printed column


def worth_of_a_rule(requests: int, rule: str) -> Quantities:
    """What some of the simulator's rules add to DSI over SI, the others being its own.

    ``rule`` names one, or several with "and" between them. "least gain" and "most gain"
    are factors over the rows of Table 1; "least without" and "most without" are DSI
    over SI where these rules are the listing's.
    """
    without = _simulator_without(rule.split(" and "))
    ratios, gains = [], []
    for row in rows_of_table_1():
        ratios.append(row.dsi_over_si(without))
        gains.append(row.dsi_over_si(SIMULATOR) / row.dsi_over_si(without))
    return {
        "least gain": Quantity.exact(min(gains), "arithmetic"),
        "most gain": Quantity.exact(max(gains), "arithmetic"),
        "least without": Quantity.exact(min(ratios), "arithmetic"),
        "most without": Quantity.exact(max(ratios), "arithmetic"),
    }


def _simulator_without(rules: Sequence[str]) -> Accounting:
    """The simulator's rules, but some of them as in the listing."""
    known = switched(SIMULATOR, LISTING)
    as_listed = {}
    for rule in rules:
        if rule not in known:
            raise unknown_name(f"no rule {rule!r}", rule, known)
        as_listed[rule] = getattr(LISTING, rule)
    return replace(SIMULATOR, **as_listed)
