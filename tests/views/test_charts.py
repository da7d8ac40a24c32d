"""A table's chart has the form named in the table's file, and every number."""

from __future__ import annotations

import re

import pytest

from speclab.papers.figures import DraftLengths
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclab.views.charts.table_charts import (
    CHARTS,
    bars_over_iterations,
    chart,
)

OUTSIDE = re.compile(r"""https?:|["'(=]\s*//\w|@import""")
PAPERS = ("pearl", "dsi", "duodecoding", "easyspec")


def filled_with(table, kind, values) -> TableResult:
    """Returns a table with these numbers of a kind, by row and column."""
    result = TableResult(table)
    for (row, column), value in values.items():
        result.add(row, column, kind, value)
    return result


def test_sweeps_mark_the_maximum_of_each_line(results):
    stars = set()
    for line in chart(results["table-5"]).data:
        if line.xaxis == "x":
            highest = list(line.marker.symbol).index("star")
            stars.add((line.name, line.x[highest]))
    assert stars == {("paper", 3), ("virtual", 3)}


def test_charts_show_the_filled_kinds_and_have_no_background(results):
    for item in ("figure-2b", "table-5", "theorem-2"):
        figure = chart(results[item])
        assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
        assert figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert not OUTSIDE.search(figure.to_json())
    assert chart(results["table-15"]) is None


def test_the_line_at_a_fixed_window_reaches_the_last_iteration_of_any_kind():
    table = load_paper("pearl").table("figure-2b")
    (column,) = table.column_labels
    result = filled_with(table, "paper", {(str(i), column): 2 for i in range(1, 11)})
    for i in range(1, 61):
        result.add(str(i), column, "virtual", 3.0)
    result.figure = DraftLengths((3,) * 60, gamma=4, complete=60)
    *bars, line = bars_over_iterations(result).data
    assert [len(bar.x) for bar in bars] == [10, 60]
    assert list(line.x) == [0.5, 60.5]
    assert list(line.y) == [4, 4]


@pytest.mark.parametrize("key", PAPERS)
def test_every_chart_named_in_a_tables_file_exists(key):
    names = {table.chart for table in load_paper(key).tables.values()}
    assert names - {None} <= set(CHARTS)
