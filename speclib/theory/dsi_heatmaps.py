"""The DSI paper's Figures 1 and 6: where SI and DSI gain, over drafter latency and acceptance.

Times are in target passes, of ``accounting``. The values of the printed heatmaps are not in the
text; what it says about them is in ``Heatmaps.cells``. Knows no plot: a view draws the panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .dsi_accounting import dsi_bound, dsi_time, si_rounds, si_sampled

SHARES = np.arange(1, 101) / 100  # drafter latency over the target's
ALPHAS = np.arange(101) / 100  # acceptance rate
LOOKAHEADS = range(1, 201)  # of Figure 1, for SI


@dataclass(frozen=True)
class Heatmaps:
    """Times over the grid, (shares, alphas) each, and the speed-ups that the figures show."""

    shares: np.ndarray
    alphas: np.ndarray
    si: np.ndarray
    dsi: np.ndarray
    plain: float

    @property
    def panels(self) -> dict[str, np.ndarray]:
        """Speed-up of A over B, the time of B over that of A, by the panels' names."""
        return {
            "(a) SI vs. non-SI": self.plain / self.si,
            "(b) DSI vs. SI": self.si / self.dsi,
            "(c) DSI vs. non-SI": self.plain / self.dsi,
            "(d) DSI vs. min(SI, non-SI)": np.minimum(self.si, self.plain) / self.dsi,
        }

    def cells(self) -> dict[tuple[str, str], float]:
        """(panel, what) -> value: the smallest and the largest of each panel, the settings at
        which SI gains though alpha is below the share, DSI's smallest gain where SI loses."""
        panels = self.panels
        si, dsi = panels["(a) SI vs. non-SI"], panels["(c) DSI vs. non-SI"]
        below = self.alphas < self.shares[:, None]
        found = {
            (name, which): pick(panel)
            for name, panel in panels.items()
            for which, pick in (("smallest", np.min), ("largest", np.max))
        }
        found["(a) SI vs. non-SI", "gains with acceptance below drafter latency"] = (
            np.sum((si > 1) & below)
        )
        found["(c) DSI vs. non-SI", "smallest where SI loses"] = np.min(
            dsi, where=si < 1, initial=np.inf
        )
        # rounded, so that equal times computed in two ways are not a slowdown
        return {key: round(float(value), 9) for key, value in found.items()}


def heatmaps(
    lookaheads: Sequence[int] = LOOKAHEADS,
    tokens: int = 50,
    repeats: int | None = 5,
    dsi_lookahead: int = 1,
    shares: np.ndarray = SHARES,
    alphas: np.ndarray = ALPHAS,
    seed: int = 0,
) -> Heatmaps:
    """Figure 1, or with lookaheads (5,) Figure 6: SI at the best of ``lookaheads``, per setting.

    ``repeats`` runs of SI are averaged as printed, which makes the best of many lookaheads a
    little too fast; None gives SI's exact expectation. DSI is at its expectation, Proposition 1's
    unless ``dsi_lookahead`` is longer. The number of tokens is not printed. Source: section 4.
    """
    ahead, share, rng = (
        np.asarray(lookaheads),
        shares[:, None],
        np.random.default_rng(seed),
    )

    def si(alpha: float) -> np.ndarray:
        """(shares, lookaheads); one acceptance rate at a time keeps the runs in the cache."""
        if repeats is None:
            return si_rounds(alpha, ahead, tokens) * (ahead * share + 1)
        return si_sampled(share, alpha, ahead, tokens, repeats, rng)

    best = np.stack([si(alpha).min(1) for alpha in alphas], 1)
    dsi = (
        dsi_bound(share, alphas, tokens)
        if dsi_lookahead == 1
        else dsi_time(share, alphas, dsi_lookahead, tokens)
    )
    return Heatmaps(shares, alphas, best, dsi, float(tokens))
