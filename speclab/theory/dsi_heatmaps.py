"""The DSI paper's Figures 1 and 6: where SI and DSI gain.

The grid covers drafter latencies and acceptance rates. Times are in target passes,
under the rules in ``dsi_accounting``. The paper does not print the heatmaps' values;
``Heatmaps.cells`` returns the numbers that its text mentions. The plots are in
``views``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .dsi_accounting import dsi_bound, dsi_time, si_rounds, si_sampled

SHARES = np.arange(1, 101) / 100  # drafter latency over target latency
ALPHAS = np.arange(101) / 100  # acceptance rate
LOOKAHEADS = range(1, 201)  # for SI in Figure 1


@dataclass(frozen=True)
class Heatmaps:
    """Times over the grid, and the speed-ups that the figures show.

    ``si`` and ``dsi`` are times [shares, alphas]; ``plain`` is plain decoding's time.
    """

    shares: np.ndarray
    alphas: np.ndarray
    si: np.ndarray
    dsi: np.ndarray
    plain: float

    @property
    def panels(self) -> dict[str, np.ndarray]:
        """The speed-up in each panel, by its name. "A vs. B" is B's time over A's."""
        faster_of_two = np.minimum(self.si, self.plain)
        return {
            "(a) SI vs. non-SI": self.plain / self.si,
            "(b) DSI vs. SI": self.si / self.dsi,
            "(c) DSI vs. non-SI": self.plain / self.dsi,
            "(d) DSI vs. min(SI, non-SI)": faster_of_two / self.dsi,
        }

    def cells(self) -> dict[tuple[str, str], float]:
        """(panel, what) -> value, for the numbers that the text mentions.

        These are the smallest and the largest value of each panel, the number of
        settings where SI gains although alpha is below the share, and DSI's smallest
        gain where SI loses.
        """
        panels = self.panels
        values = {}
        for name, panel in panels.items():
            values[name, "smallest"] = np.min(panel)
            values[name, "largest"] = np.max(panel)

        si, dsi = panels["(a) SI vs. non-SI"], panels["(c) DSI vs. non-SI"]
        acceptance_below_share = self.alphas < self.shares[:, None]
        values["(a) SI vs. non-SI", "gains with acceptance below drafter latency"] = (
            np.sum((si > 1) & acceptance_below_share)
        )
        values["(c) DSI vs. non-SI", "smallest where SI loses"] = np.min(
            dsi, where=si < 1, initial=np.inf
        )
        # Rounded, so that equal times computed in two ways do not look like a slowdown.
        return {key: round(float(value), 9) for key, value in values.items()}


def heatmaps(
    lookaheads: Sequence[int] = LOOKAHEADS,
    tokens: int = 50,
    repeats: int | None = 5,
    dsi_lookahead: int = 1,
    shares: np.ndarray = SHARES,
    alphas: np.ndarray = ALPHAS,
    seed: int = 0,
) -> Heatmaps:
    """The times behind Figure 1, or with lookaheads (5,) Figure 6.

    SI uses the best of ``lookaheads`` in every setting. As in the paper, we average
    ``repeats`` runs of SI, which makes the best of many lookaheads look a little too
    fast; None computes SI's exact expectation. DSI's time is its expectation, from
    Proposition 1 unless ``dsi_lookahead`` is above 1. The paper does not print the
    number of tokens. Source: section 4.
    """
    all_lookaheads = np.asarray(lookaheads)
    share = shares[:, None]
    rng = np.random.default_rng(seed)

    # With one acceptance rate at a time, the runs fit into the processor's cache.
    columns = []
    for alpha in alphas:
        if repeats is None:
            rounds = si_rounds(alpha, all_lookaheads, tokens)
            times = rounds * (all_lookaheads * share + 1)
        else:
            times = si_sampled(share, alpha, all_lookaheads, tokens, repeats, rng)
        columns.append(times.min(1))  # [shares, lookaheads]
    si = np.stack(columns, 1)

    if dsi_lookahead == 1:
        dsi = dsi_bound(share, alphas, tokens)
    else:
        dsi = dsi_time(share, alphas, dsi_lookahead, tokens)
    return Heatmaps(shares, alphas, si, dsi, float(tokens))
