"""DSI by its paper's own formulas: on the grid of Figure 1 and by the rows of Table 1.

Proposition 1 gives DSI's time and the listing of Appendix D.1 that of SI, which is
speculative decoding. Both are worked out exactly, so nothing here is drawn.
"""

from __future__ import annotations

import math

from speclab.audit.quantity import Quantities, Quantity
from speclab.theory.dsi_accounting import (
    LISTING,
    dsi_bound,
    dsi_time,
    servers_needed,
    si_time,
)
from speclab.theory.dsi_heatmaps import LOOKAHEADS, heatmaps

from .dsi_charges import HALF_A_DIGIT, RowOfTable1, rows_of_table_1


def dsi_over_the_grid(requests: int, tokens: int, lookahead: int = 0) -> Quantities:
    """The smallest and the largest speed-ups over the grid of latency and acceptance.

    SI has ``lookahead``, or with 0 its best of the figure's 200 at every setting.
    """
    lookaheads = (lookahead,) if lookahead else tuple(LOOKAHEADS)
    panels = heatmaps(lookaheads, tokens, repeats=None).panels
    return {
        "SI over plain decoding, least": _exact(panels["(a) SI vs. non-SI"].min()),
        "DSI over SI, least": _exact(panels["(b) DSI vs. SI"].min()),
        "DSI over plain decoding, least": _exact(panels["(c) DSI vs. non-SI"].min()),
        "DSI over the faster of both, most": _exact(
            panels["(d) DSI vs. min(SI, non-SI)"].max()
        ),
    }


def dsi_over_si_by_lookahead(requests: int, most_servers: int = 0) -> Quantities:
    """DSI over SI at each lookahead of Table 1's protocol, beside the printed number.

    DSI is at its best: with 0 ``most_servers`` that is Proposition 1, which needs up to
    16 servers. Else lookaheads that need more servers than that are left out.
    """
    tuned, untuned = [], []
    rows_between = 0
    for row in rows_of_table_1():
        dsi = _best_time_of_dsi(row, most_servers)
        ratios = []
        for lookahead in row.lookaheads:
            si = si_time(row.share, row.alpha, lookahead, row.tokens, LISTING)
            ratios.append(float(si) / dsi)
        tuned.append(min(ratios))
        untuned.append(max(ratios))
        is_above_least = row.printed + HALF_A_DIGIT >= min(ratios)
        is_below_most = row.printed - HALF_A_DIGIT <= max(ratios)
        rows_between += is_above_least and is_below_most

    return {
        "SI tuned, lowest": _exact(min(tuned)),
        "SI tuned, highest": _exact(max(tuned)),
        "SI at its worst lookahead, highest": _exact(max(untuned)),
        "rows": _exact(len(tuned)),
        "rows printed between both": _exact(rows_between),
    }


def _best_time_of_dsi(row: RowOfTable1, most_servers: int) -> float:
    if not most_servers:
        return float(dsi_bound(row.share, row.alpha, row.tokens))
    best = math.inf
    for lookahead in row.lookaheads:
        if servers_needed(row.share, lookahead) <= most_servers:
            time = dsi_time(row.share, row.alpha, lookahead, row.tokens, LISTING)
            best = min(best, float(time))
    return best


def _exact(value: float) -> Quantity:
    return Quantity.exact(round(float(value), 9), "arithmetic")
