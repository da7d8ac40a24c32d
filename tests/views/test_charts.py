"""Charts of tables: the form that the table's file names, with every number in it."""

from __future__ import annotations

import re

import pytest

from speclab.papers.figures import DraftLengths
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclab.views.charts.table_charts import (
    CHARTS,
    bars_by_kind,
    bars_by_method,
    bars_over_iterations,
    chart,
)

OUTSIDE = re.compile(r"""https?:|["'(=]\s*//\w|@import""")
PAPERS = ("pearl", "dsi", "duodecoding", "easyspec")


def filled_with(table, kind, values) -> TableResult:
    """A table with these numbers of a kind, by row and column."""
    result = TableResult(table)
    for (row, column), value in values.items():
        result.add(row, column, kind, value)
    return result


def add_with_interval(result: TableResult, low: float, high: float) -> None:
    """Adds a measured number of 1.5 with this interval."""
    result.add("PEARL (ours)", "Llama2 7&70B", "measured", 1.5, n=2)
    result.lines[-1] = result.lines[-1]._replace(low=low, high=high)


def test_an_interval_that_is_many_times_its_bar_leaves_the_panel_at_the_top():
    """Else nobody would see the bar of 1.5 beside an interval up to 60."""
    table = load_paper("pearl").table("table-1")
    narrow, wide = TableResult(table), TableResult(table)
    add_with_interval(narrow, 1.2, 1.9)
    add_with_interval(wide, 0.04, 60.0)
    assert bars_by_method(narrow).layout.yaxis.range is None
    assert bars_by_method(wide).layout.yaxis.range == (0, 3.0)

    error_bars = bars_by_method(wide).data[0].error_y
    assert max(error_bars.array) == 58.5
    assert max(error_bars.arrayminus) == 1.46


def test_sweeps_mark_the_highest_of_each_line(results):
    stars = set()
    for line in chart(results["table-5"]).data:
        if line.xaxis == "x":
            highest = list(line.marker.symbol).index("star")
            stars.add((line.name, line.x[highest]))
    assert stars == {("paper", 3), ("virtual", 3)}


def test_charts_are_of_the_filled_kinds_and_paint_no_background(results):
    for item in ("figure-2b", "table-1", "table-5", "theorem-2"):
        figure = chart(results[item])
        assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
        assert figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert not OUTSIDE.search(figure.to_json())
    assert chart(results["table-15"]) is None


def test_the_line_at_a_fixed_window_goes_on_to_the_last_iteration_of_any_kind():
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


@pytest.mark.parametrize("key", ["pearl", "dsi"])
def test_a_chart_of_pairs_has_a_bar_for_every_number_of_the_tables_unit(key):
    for table in load_paper(key).tables.values():
        printed = {}
        for row, column, value in table.cells:
            if table.settings_of(row, column)["unit"] == table.unit:
                printed[row, column] = value
        if table.chart != "bars_by_kind" or not printed:
            continue

        result = filled_with(table, "paper", printed)
        for (row, column), value in printed.items():
            result.add(row, column, "virtual", value)
        heights = []
        for bar in bars_by_kind(result).data:
            heights += [height for height in bar.y if height is not None]
        assert sorted(heights) == sorted([*printed.values()] * 2), table.item


@pytest.mark.parametrize("key", PAPERS)
def test_every_chart_that_a_tables_file_names_is_known(key):
    names = {table.chart for table in load_paper(key).tables.values()}
    assert names - {None} <= set(CHARTS)
