"""Computes the rows of DSI's Table 1, by the paper's formulas and by other rules.

The table reports the speed-up of DSI over SI, which is speculative decoding. Rules
determine which work is charged, and when. We evaluate them exactly, without sampling
(``theory.dsi_accounting``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from speclab.papers.load_papers import load_paper
from speclab.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    Accounting,
    dsi_bound,
    si_time,
    speedup,
)


@dataclass(frozen=True)
class DsiRow:
    """The printed numbers in a row of Table 1.

    share    the drafter's latency over the target's
    alpha    the acceptance rate
    printed  the speed-up of DSI over SI
    """

    share: float
    alpha: float
    printed: float
    tokens: int
    lookaheads: tuple[int, ...]

    def by_the_formulas(self) -> list[float]:
        """DSI over SI at each lookahead of SI, by Proposition 1 and Appendix D.1."""
        dsi = float(dsi_bound(self.share, self.alpha, self.tokens))
        ratios = []
        for lookahead in self.lookaheads:
            si = si_time(self.share, self.alpha, lookahead, self.tokens, LISTING)
            ratios.append(float(si) / dsi)
        return ratios

    def by_rules(self, rules: Accounting) -> float:
        """DSI over SI under these charging rules, each at its best lookahead."""
        return float(
            speedup(self.share, self.alpha, self.tokens, rules, self.lookaheads)
        )

    def worth_of(self, *rules: str) -> float:
        """The factor by which the named simulator rules raise DSI over SI.

        The numerator uses the simulator's rules. The denominator replaces the named
        ones with the listing's.
        """
        as_listed = {rule: getattr(LISTING, rule) for rule in rules}
        without = replace(SIMULATOR, **as_listed)
        return self.by_rules(SIMULATOR) / self.by_rules(without)


def rows_of_table_1() -> Iterator[DsiRow]:
    """The rows of Table 1, with its protocol's settings."""
    paper = load_paper("dsi")
    protocol = paper.facts["protocol"]
    table = paper.table("table-1")
    for row in table.row_labels:
        printed = {column: n for label, column, n in table.cells if label == row}
        yield DsiRow(
            share=printed["Drafter Latency (ms)"] / printed["Target Latency (ms)"],
            alpha=printed["Acceptance Rate (%)"] / 100,
            printed=printed["Speedup DSI vs. SI"],
            tokens=protocol["simulated_tokens"],
            lookaheads=tuple(protocol["lookahead"]),
        )
