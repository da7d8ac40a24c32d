"""DSI's own code on the simulated clock, beside the formula of Proposition 1."""

from __future__ import annotations

import math

from speclab.audit.quantity import Quantities, Quantity
from speclab.theory.dsi_accounting import servers_needed
from speclab.virtual.grid_row import GridRow, compute_row

SHARES = (0.1, 0.5, 0.9)  # drafter latency over the target's
ALPHAS = (0.0, 0.5, 0.9, 1.0)
MOST_REQUESTS = 3  # per setting: the formula is exact for the drafts of each of them


def dsi_beside_proposition_1(requests: int, tokens: int) -> Quantities:
    """DSI's time over that of the formula for the very drafts that it met.

    At twelve settings, with lookahead 1 and as many servers as it takes. "over plain
    decoding" is the smallest of all speed-ups.
    """
    ratios = []
    least_gain = math.inf
    for share in SHARES:
        servers = int(servers_needed(share, 1))
        row = GridRow(
            method="dsi",
            share=share,
            alphas=ALPHAS,
            settings=(("lookahead", 1), ("servers", servers)),
            tokens=tokens,
            requests=min(requests, MOST_REQUESTS),
        )
        for code, formula in compute_row(row):
            ratios.append(code / formula)
            least_gain = min(least_gain, tokens / code)
    return {
        "code over formula, least": Quantity.exact(round(min(ratios), 9)),
        "code over formula, most": Quantity.exact(round(max(ratios), 9)),
        "over plain decoding, least": Quantity.exact(round(least_gain, 9)),
    }
