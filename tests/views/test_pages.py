"""Pages of the reports: nothing loaded from anywhere, everything shown and readable."""

from __future__ import annotations

import re
from shutil import which

import pytest
from helpers import late

from speclab.papers.load_papers import load_paper
from speclab.views.charts.choose import chart
from speclab.views.pages.index import index_page, summary
from speclab.views.pages.notebook import notebook_page
from speclab.views.pages.notebook_files import PLOTLY, WIDGET
from speclab.views.pages.places import find_anchors
from speclab.views.tables.html import STYLE, section_html
from speclab.views.tables.markdown import paper_md
from speclab.views.tables.tally import count

OUTSIDE = re.compile(r"""https?:|["'(=]\s*//\w|@import""")


def executed(outputs, source="pearl.show('table-5')"):
    """The JSON of a notebook with one code cell that left ``outputs``."""
    cells = [
        late.nbformat.v4.new_markdown_cell("# Title\n\ntext"),
        late.nbformat.v4.new_markdown_cell("## A section"),
        late.nbformat.v4.new_code_cell(source, outputs=outputs),
    ]
    return late.nbformat.writes(late.nbformat.v4.new_notebook(cells=cells))


def output(**data):
    return late.nbformat.v4.new_output("display_data", data)


def html_output(html: str):
    return output(**{"text/html": html})


def chart_output(figure):
    data = figure.to_plotly_json() | {"config": {"u": "https://x"}}
    return output(**{PLOTLY: data})


# -- notebooks -------------------------------------------------------------------------
def test_no_page_names_anything_outside_its_folder(results):
    paper = load_paper("pearl")
    outputs = [html_output(section_html(result)) for result in results.values()]
    outputs.append(chart_output(chart(results["table-5"])))
    page = notebook_page(executed(outputs), "Title")
    anchors = {"pearl": find_anchors(page)}
    index = index_page([summary(paper, results)], {"machine": "xeon"}, anchors)

    links = r"<(?:link|iframe|img|object)[^>]*(?:href|src)=.?(?!data:)"
    for html in (page, index):
        assert not OUTSIDE.findall(html)
        assert not re.findall(links, html)
    assert re.findall(r'src="([^"]*)"', page) == ["plotly.min.js"]
    addresses = re.findall(r'href="([^"]*)"', index)
    links_of_index = {link for link in addresses if "html#" not in link}
    files = {"pearl.html", "pearl.md", "ledger.csv", "claims.csv", "#claims"}
    assert links_of_index == files
    assert not OUTSIDE.findall(paper_md(paper, results))


def test_a_chart_becomes_data_that_cannot_end_its_script(results):
    figure = chart(results["table-5"])
    figure.update_layout(title="</script><b>")
    page = notebook_page(executed([chart_output(figure)]), "Title")
    assert page.count('class="plotly-chart"') == 2  # in its place, and on top
    assert "</script><b>" not in page
    assert '"config"' not in page


def test_the_chart_of_the_front_item_stands_below_the_title_with_links_to_all():
    cells = [late.nbformat.v4.new_markdown_cell("# Title\n\nA long text.")]
    for number in (1, 2, 3):
        heading = late.nbformat.v4.new_markdown_cell(f"## Table {number}")
        figure = {"data": [{"y": [number]}], "layout": {"height": 100 * number}}
        code = late.nbformat.v4.new_code_cell(
            f'pearl.chart("table-{number}")', outputs=[output(**{PLOTLY: figure})]
        )
        cells += [heading, code]
    notebook = late.nbformat.writes(late.nbformat.v4.new_notebook(cells=cells))

    page = notebook_page(notebook, "Title", front="table-2")
    top = page.partition("</h1>")[2].partition("A long text.")[0]
    assert re.findall(r"min-height:(\d+)px", top) == ["200"]
    links = re.findall(r'href="#([^"]+)"', top)
    assert links == ["table-2", "table-1", "table-3"]

    page = notebook_page(notebook, "Title", front="table-9")  # it has no chart
    assert re.search(r"min-height:(\d+)px", page)[1] == "100"


def test_widgets_give_way_to_their_picture_and_bare_ones_are_dropped():
    view = {WIDGET: {"model_id": "1"}}
    picture = {"image/png": "AAAA", "text/plain": "timeline of 2 runs"}
    with_picture = output(**view, **picture)
    bare = output(**view, **{"text/plain": "cells: 0%"})
    page = notebook_page(executed([with_picture, bare]), "Title")
    assert 'src="data:image/png;base64,AAAA"' in page
    assert 'alt="timeline of 2 runs"' in page
    assert "cells: 0%" not in page
    assert "model_id" not in page


def test_a_page_has_a_table_of_contents_its_style_once_and_the_parameters_used(results):
    html = section_html(results["table-5"])
    text = executed([html_output(html)] * 2)
    page = notebook_page(text, "A <title>")
    assert '<a class="level-2" href="#a-section">A section</a>' in page
    assert page.count(STYLE) == 1
    assert "<title>A &lt;title&gt;</title>" in page

    notebook = late.nbformat.reads(text, as_version=4)
    defaults = notebook.cells[2]
    defaults.metadata.tags = ["parameters"]
    injected = late.nbformat.v4.new_code_cell("quick = True")
    injected.metadata.tags = ["injected-parameters"]
    notebook.cells.append(injected)
    page = notebook_page(late.nbformat.writes(notebook), "Title")
    assert "quick = True" in page
    assert "pearl.show" not in page


# -- index -----------------------------------------------------------------------------
def test_a_papers_summary_counts_cells_and_verdicts_by_kind(results):
    counts = count(results)
    printed_cells = sum(len(result.table.cells) for result in results.values())
    assert counts["paper"]["cells"] == printed_cells

    verdicts = []
    for result in results.values():
        verdicts += [row.holds for row in result.claims if row.kind == "virtual"]
    virtual = counts["virtual"]
    assert sum(virtual.values()) - virtual["cells"] == len(verdicts)
    assert virtual["open"] + virtual["own open"] == verdicts.count("open") > 0
    assert virtual["not judged"] == verdicts.count("not judged")

    second_verdicts = []
    for result in results.values():
        second_verdicts += [row.holds for row in result.claims_over_same_devices]
    second = counts["virtual, over the same devices"]
    assert second["cells"] > 0
    assert sum(second.values()) - second["cells"] == len(second_verdicts) > 0


def test_the_index_says_how_it_was_made(results):
    entry = summary(load_paper("pearl"), results)
    html = index_page([entry], {"made": "2026-01-01 10:00", "cpu": "<x>"})
    assert "2026-01-01 10:00" in html
    assert "&lt;x&gt;" in html


# -- in a browser ----------------------------------------------------------------------
@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_offline_and_draw_their_charts(results, tmp_path, scheme):
    playwright = pytest.importorskip("playwright.sync_api")
    from plotly.offline import get_plotlyjs

    chromium = which("chromium") or which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here")

    outputs = [
        html_output(section_html(results["table-1"])),
        chart_output(chart(results["table-5"])),
    ]
    path = tmp_path / "page.html"
    path.write_text(notebook_page(executed(outputs), "Title"))
    (tmp_path / "plotly.min.js").write_text(get_plotlyjs())

    requests, errors = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        context = browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": 700, "height": 900}
        )
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector(".plotly-chart .main-svg", timeout=20_000)
        width = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert not errors
    assert width <= 700, "a wide table must scroll in its own box"
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
