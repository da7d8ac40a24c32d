"""DSI's charts and its wide table in the paper's report."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from speclab.papers.figures import HeatmapFigure
from speclab.papers.load_papers import load_paper
from speclab.theory.dsi_heatmaps import heatmaps
from speclab.views.charts.table_charts import chart


def test_heatmaps_have_acceptance_upwards_and_a_line_only_if_something_is_slower():
    """In the paper's panel (a), SI gains in "the region above the pink region"."""
    rules = heatmaps((5,), repeats=None, dsi_lookahead=5)
    shares = np.array([0.1, 1.0])
    alphas = np.array([0.0, 0.5, 1.0])
    code = np.ones((2, 3))
    figure_6 = SimpleNamespace(
        table=load_paper("dsi").table("figure-6"),
        values={"virtual": {("a", "b"): 1.0}},
        kinds=["virtual"],
        figure=HeatmapFigure(
            rules, shares, alphas, code, code - 1, "the rules', sampled"
        ),
    )
    figure = chart(figure_6)

    si = next(trace for trace in figure.data if trace.type == "heatmap")
    speeds = np.array(si.z)
    assert speeds.shape == (len(si.y), len(si.x)) == (101, 100)
    assert si.y[-1] == si.x[-1] == 1
    always_right_and_fast = speeds[100, 0]
    never_right_and_slow = speeds[0, 99]
    assert always_right_and_fast > 0 > never_right_and_slow

    contour_axes = [trace.xaxis for trace in figure.data if trace.type == "contour"]
    assert contour_axes == [si.xaxis]
    titles = {annotation.text for annotation in figure.layout.annotations}
    assert "(a) SI vs. non-SI" in titles
