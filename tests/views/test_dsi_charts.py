"""DSI's charts and its wide table in the paper's report."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from speclab.papers.figures import HeatmapFigure
from speclab.papers.ledger import LedgerLine
from speclab.papers.load_papers import load_paper
from speclab.theory.dsi_heatmaps import heatmaps
from speclab.views.charts.table_charts import chart
from speclab.views.tables.grid import Source, build_grid


def extra_1(**means: float):
    """Extra 1 with one value for all pairs in each column: 1 where none is given."""
    table = load_paper("dsi").table("extra-1")
    values = {}
    rows = []
    for row in table.row_labels:
        for column in table.column_labels:
            value = means.get(column, 1.0)
            values[row, column] = value
            rows.append(
                LedgerLine(
                    "dsi", "extra-1", row, column, "speedup", "x", "virtual", "", value
                )
            )
    return SimpleNamespace(
        table=table,
        lines=rows,
        values={"virtual": values},
        left_out=set(),
        kinds=["virtual"],
        figure=None,
    )


def test_heatmaps_have_acceptance_upwards_and_a_line_only_where_something_is_slower():
    """The paper on panel (a): SI gains in "the region above the pink region"."""
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


def test_the_mean_over_all_rows_stands_beside_each_accounting():
    figure = chart(extra_1(simulator=2.0))
    means = {}
    for annotation in figure.layout.annotations:
        if annotation.y:
            means[annotation.y] = annotation.text
    assert means["simulator"] == "<b>2.00</b>"
    assert means["listing"] == "<b>1.00</b>"
    # (1.47 + 1.41 + ... + 1.60) / 10
    assert means["printed in Table 1"] == "<b>1.52</b>"


def test_a_table_too_wide_is_shown_with_rows_and_columns_exchanged():
    filled = extra_1(simulator=1.75)
    pair = "Phi3-14B / Phi3-4B / Alpaca"
    source = Source("virtual")
    upright = build_grid(filled)
    narrow = upright.narrow()
    assert narrow.entry("simulator", pair, source).text == "1.75"
    assert upright.entry(pair, "simulator", source).text == "1.75"
    assert (narrow.rows_are, narrow.columns_are) == (
        upright.columns_are,
        upright.rows_are,
    )
    assert len(upright.columns) == len(narrow.rows) == 15
    assert len(narrow.columns) == 10
