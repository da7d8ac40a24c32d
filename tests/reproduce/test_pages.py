"""Pages of executed notebooks load nothing, and their pictures have texts."""

from __future__ import annotations

import re

import pytest
from helpers import late

from speclab.reproduce.pages import notebook_page
from speclab.views.notebook_files import PLOTLY, WIDGET

FROM_ELSEWHERE = re.compile(
    r"""(?:src|href)=["']?(?:https?:)?//|@import|url\(["']?http"""
)


@pytest.fixture
def executed() -> str:
    """The JSON of a notebook with a chart, a widget, a bare widget, and its states."""
    make = late.nbformat.v4
    view = {WIDGET: {"model_id": "1"}}
    chart = {"data": [{"y": [1]}], "layout": {"title": {"text": "</script><b>"}}}
    outputs = [
        make.new_output("display_data", {PLOTLY: chart}),
        make.new_output(
            "display_data",
            {**view, "image/png": "AAAA", "text/plain": "timeline of 2 runs"},
        ),
        make.new_output("display_data", {**view, "text/plain": "cells: 0%"}),
    ]
    cells = [
        make.new_markdown_cell("# Title"),
        make.new_code_cell("pearl.show('table-5')", outputs=outputs),
    ]
    states = {"application/vnd.jupyter.widget-state+json": {"state": {"1": {}}}}
    notebook = make.new_notebook(cells=cells, metadata={"widgets": states})
    return str(late.nbformat.writes(notebook))


def test_a_page_loads_nothing_from_elsewhere(executed):
    page = notebook_page(executed, "Title")
    assert not FROM_ELSEWHERE.findall(page)
    assert [
        src for src in re.findall(r'src="([^"]+)"', page) if src[:5] != "data:"
    ] == ["plotly.min.js"]


def test_a_page_has_charts_and_pictures_with_words_and_no_bare_widget(executed):
    page = notebook_page(executed, "A <title>")
    assert "<title>A &lt;title&gt;</title>" in page
    assert page.count("plotly-graph-div") > 0
    assert "</script><b>" not in page
    assert 'alt="timeline of 2 runs"' in page
    assert "cells: 0%" not in page
    assert "pearl.show" not in page
