"""DSI's Figures 1 and 6 at their corners, cell by cell, and with many random runs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from speclab.theory.dsi_accounting import si_time
from speclab.theory.dsi_heatmaps import ALPHAS, LOOKAHEADS, SHARES, heatmaps

SI = "(a) SI vs. non-SI"
DSI_OVER_SI = "(b) DSI vs. SI"
DSI = "(c) DSI vs. non-SI"


def test_figure_1_in_expectation_at_its_corners():
    maps = heatmaps(repeats=None)
    cells = maps.cells()

    for panel in maps.panels.values():
        assert panel.shape == (100, 101)
    assert cells[SI, "smallest"] == 0.5  # each token takes a round of 1 + 1
    largest = pytest.approx(50 / 1.49)  # 49 drafts and a pass
    assert cells[SI, "largest"] == largest
    assert cells[DSI, "largest"] == largest
    assert cells[DSI_OVER_SI, "largest"] == 2.0
    si_panel, *dsi_panels = maps.panels
    assert si_panel == SI
    assert [cells[name, "smallest"] for name in dsi_panels] == [1, 1, 1]
    assert cells[SI, "gains with acceptance below drafter latency"] == 0
    assert cells[DSI, "smallest where SI loses"] == 1  # with no draft right


def test_figure_6_in_expectation_at_its_corners():
    cells = heatmaps((5,), repeats=None).cells()
    assert cells[SI, "smallest"] == pytest.approx(1 / 6)
    assert cells[SI, "largest"] == pytest.approx(50 / (9 * 1.05))
    longer = heatmaps((5,), repeats=None, dsi_lookahead=5).cells()
    assert longer[DSI, "smallest"] == 1
    assert longer[DSI_OVER_SI, "smallest"] < cells[DSI_OVER_SI, "smallest"]


def test_panels_divide_the_times_cell_by_cell():
    shares = np.array([0.1, 0.8])
    alphas = np.array([0.0, 0.5, 1.0])
    maps = heatmaps((1, 4), tokens=9, repeats=None, shares=shares, alphas=alphas)

    for (row, share), (column, alpha) in product(enumerate(shares), enumerate(alphas)):
        plain = 9
        si = min(si_time(share, alpha, 1, 9), si_time(share, alpha, 4, 9))
        dsi = share * alpha * 8 + (1 - alpha) * 8 + 1

        values = [panel[row, column] for panel in maps.panels.values()]
        expected = [plain / si, si / dsi, plain / dsi, min(si, plain) / dsi]
        assert values == pytest.approx(expected)


def test_the_best_of_many_means_of_five_is_too_fast():
    """With the paper's number of repeats, SI looks too fast; with many, it does not."""
    grid = {"shares": SHARES[9:40:10], "alphas": ALPHAS[60:100:10]}
    exact = heatmaps(repeats=None, **grid).si
    ratio = heatmaps(repeats=5, **grid).si / exact
    assert ratio.mean() < 0.97
    assert ratio.min() < 0.9

    many_repeats = heatmaps(LOOKAHEADS[:12], repeats=3000, **grid).si
    assert many_repeats == pytest.approx(exact, rel=0.02)
