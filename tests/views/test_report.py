"""Tables, charts and pages: every number with its kind, nothing loaded from anywhere, all readable.

Filled tables come from PEARL's data and its virtual cells.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from types import SimpleNamespace

import nbformat
import pytest

from speclib import paths
from speclib.experiment.spec import QUICK
from speclib.papers.fill import fill_all
from speclib.papers.ledger import LedgerRow
from speclib.papers.load import load_paper
from speclib.views import pages as report
from speclib.views.charts import choose as charts
from speclib.views.tables import html as tables
from speclib.views.tables import markdown
from speclib.views.tables.cell_text import write_difference
from speclib.views.tables.grid import Source, build_grid

SHORT = replace(QUICK, virtual_tokens=1_024)
EXTERNAL = re.compile(r"""https?:|["'(=]\s*//\w|@import""")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Items of every form, with short virtual cells."""
    held, paths.CACHE = paths.CACHE, tmp_path_factory.mktemp("cache")
    try:
        items = [
            "figure-2b",
            "table-1",
            "table-4",
            "table-5",
            "table-9",
            "table-15",
            "theorem-2",
        ]
        yield fill_all(load_paper("pearl"), SHORT, items, kinds=("virtual",))
    finally:
        paths.CACHE = held


def executed(outputs, source="pearl.show('table-5')"):
    """The JSON of a notebook with one code cell that left ``outputs``."""
    cells = [
        nbformat.v4.new_markdown_cell("# Title\n\ntext"),
        nbformat.v4.new_markdown_cell("## A section"),
        nbformat.v4.new_code_cell(source, outputs=outputs),
    ]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


def output(**data):
    return nbformat.v4.new_output("display_data", data)


def plot(figure):
    return output(
        **{report.PLOTLY: figure.to_plotly_json() | {"config": {"u": "https://x"}}}
    )


# -- numbers -------------------------------------------------------------------------------------
def test_a_cell_shows_its_kinds_side_by_side_with_the_error_against_print(filled):
    cell = build_grid(filled["table-5"]).cells["3", "CodeLlama 7&34"]
    paper, virtual = cell[Source("paper")], cell[Source("virtual")]
    assert paper.text == "46.06" and paper.mark == "†" and "41.1" in paper.note
    assert re.fullmatch(r"\d\d\.\d\d", virtual.text)
    assert write_difference(float(virtual.text) / 46.06 - 1) == virtual.difference


def test_the_unit_shown_is_the_printed_one(filled):
    g = build_grid(filled["table-15"])
    assert (
        g.unit == "ms"
        and g.entry("target", "llama 2 7&70B", Source("paper")).text == "108.0"
    )


def test_numbers_in_brackets_stand_with_their_cell(filled):
    entry = build_grid(filled["table-4"]).entry(
        "PEARL w/o pre-verify", "Llama 2 7B&70B", Source("paper")
    )
    assert (entry.text, entry.bracket) == ("2.51", "(0.26)") and "0.36" in entry.note
    assert "| 2.51† (0.26) |" in markdown.section_md(filled["table-4"])
    assert "<small>(0.26)</small>" in tables.section_html(filled["table-4"])


@pytest.mark.parametrize(
    "share, text",
    [
        (0, "0 %"),
        (0.0004, "0 %"),
        (-0.042, "−4.2 %"),
        (0.193, "+19 %"),
        (float("nan"), ""),
    ],
)
def test_relative_differences_are_short_and_signed(share, text):
    assert write_difference(share) == text


def test_every_printed_cell_is_in_html_and_markdown(filled):
    for item in filled.values():
        html, text = tables.section_html(item), markdown.section_md(item)
        for row, column, value in item.table.cells:
            entry = build_grid(item).entry(row, column, Source("paper"))
            assert float(entry.text) == pytest.approx(
                value * (1000 if entry.text and item.table.printed_unit == "ms" else 1)
            )
            assert f">{entry.text}<" in html and entry.text in text


def test_every_claim_and_erratum_is_shown_with_its_verdict(filled):
    for item in filled.values():
        html, text = tables.section_html(item), markdown.section_md(item)
        for claim in item.table.claims:
            assert claim.id in html and claim.text in text
        assert text.count("✓") + text.count("✗") == sum(
            c.holds in ("yes", "no") for c in item.claims
        )
        assert html.count("<b>") == len(item.table.errata)


def test_every_section_says_where_its_numbers_come_from(filled):
    text = markdown.section_md(filled["table-5"])
    assert "paper: arXiv:2408.11850" in text and "virtual: data/latency/pearl/" in text


def test_another_machines_numbers_are_a_column_of_their_own(filled):
    row = LedgerRow(
        "pearl",
        "table-5",
        "3",
        "CodeLlama 7&34",
        "decode_speed",
        "tok/s",
        "measured",
        "hub/x@epyc-64c/bfloat16/1",
        51.5,
        50.0,
        53.0,
        8,
        "measured 2026-01-01 9:00",
        "dilated; c 3.1",
    )
    other = row._replace(item="table-6", value=77.7)
    text = markdown.section_md(filled["table-5"], [row, other])
    assert "measured @ epyc-64c" in text and "51.50" in text and "77.7" not in text
    html = tables.section_html(filled["table-5"], [row])
    assert "measured @ epyc-64c" in html
    assert 'title="95 %: 50.00 .. 53.00 (n 8); dilated; c 3.1"' in html
    assert (
        "measured: epyc-64c/bfloat16/1, n = 8, measured 2026-01-01: hub/x (dilated)"
        in text
    )


def test_a_cell_that_failed_is_shown_as_failed(filled):
    item = filled["table-5"]
    row = next(r for r in item.rows if r.kind == "virtual")
    broken = SimpleNamespace(
        table=item.table,
        claims=[],
        errors={"table-5, 2: pearl": "no <file>"},
        rows=[
            r if r is not row else row._replace(value=None, note="failed: no <file>")
            for r in item.rows
        ],
    )
    html = tables.section_html(broken)
    assert (
        ">failed</td>" in html and "no &lt;file&gt;" in html and "no <file>" not in html
    )


def test_wide_tables_scroll_in_their_own_box(filled):
    for item in filled.values():
        html = tables.section_html(item)
        assert html.count("<table") == html.count(
            '<div class="scroll" tabindex=0><table'
        )


def test_markdown_tables_have_equal_columns(filled):
    for item in filled.values():
        for block in re.findall(r"(?:^\|.*\|\n?)+", markdown.section_md(item), re.M):
            cells = [
                len(re.findall(r"(?<!\\)\|", line))
                for line in block.strip().splitlines()
            ]
            assert len(set(cells)) == 1, block


# -- charts --------------------------------------------------------------------------------------
def test_sweeps_mark_the_highest_of_each_line(filled):
    figure = charts.chart(filled["table-5"])
    stars = {
        (t.name, t.x[list(t.marker.symbol).index("star")])
        for t in figure.data
        if t.xaxis == "x"
    }
    assert {("paper", 3), ("virtual", 3)} == stars


def test_charts_are_of_the_filled_kinds_and_paint_no_background(filled):
    for item in ("figure-2b", "table-1", "table-5", "theorem-2"):
        figure = charts.chart(filled[item])
        assert (
            figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
        )
        assert not EXTERNAL.search(figure.to_json())
    assert charts.chart(filled["table-15"]) is None


@pytest.mark.parametrize("key", ["pearl", "dsi"])
def test_a_chart_of_pairs_has_a_bar_for_every_number_of_the_tables_unit(key):
    for table in load_paper(key).tables.values():
        printed = {
            (row, column): value
            for row, column, value in table.cells
            if table.settings_of(row, column)["unit"] == table.unit
        }
        shown = SimpleNamespace(
            table=table,
            kinds=("paper", "virtual"),
            figure=None,
            values={"paper": printed, "virtual": printed},
        )
        if table.rows not in ("pair", "target / drafter / dataset") or not printed:
            continue
        bars = [
            y for bar in charts.bars_by_kind(shown).data for y in bar.y if y is not None
        ]
        assert sorted(bars) == sorted([*printed.values()] * 2), table.item


# -- pages ---------------------------------------------------------------------------------------
def test_no_page_names_anything_outside_its_folder(filled):
    outputs = [
        output(**{"text/html": tables.section_html(item)}) for item in filled.values()
    ]
    outputs += [plot(charts.chart(filled["table-5"]))]
    page = report.notebook_page(executed(outputs), "Title")
    entry = report.summary(load_paper("pearl"), filled, "quick") | {
        "made": "2026-01-01, commit x"
    }
    index = report.index_page([entry], {"machine": "xeon"})
    for html in (page, index):
        assert not EXTERNAL.findall(html)
        assert not re.findall(
            r"<(?:link|iframe|img|object)[^>]*(?:href|src)=.?(?!data:)", html
        )
    assert re.findall(r'src="([^"]*)"', page) == ["plotly.min.js"]
    assert set(re.findall(r'href="([^"]*)"', index)) == {
        "pearl.html",
        "pearl.md",
        "ledger.csv",
        "claims.csv",
    }
    assert not EXTERNAL.findall(markdown.paper_md(load_paper("pearl"), filled))


def test_a_chart_becomes_data_that_cannot_end_its_script(filled):
    figure = charts.chart(filled["table-5"])
    figure.update_layout(title="</script><b>")
    page = report.notebook_page(executed([plot(figure)]), "Title")
    assert page.count('class="plotly-chart"') == 1 and "</script><b>" not in page
    assert '"config"' not in page


def test_widgets_give_way_to_their_picture_and_bare_ones_are_dropped():
    view = {report.WIDGET: {"model_id": "1"}}
    page = report.notebook_page(
        executed(
            [
                output(
                    **view, **{"image/png": "AAAA", "text/plain": "timeline of 2 runs"}
                ),
                output(**view, **{"text/plain": "cells: 0%"}),
            ]
        ),
        "Title",
    )
    assert (
        'src="data:image/png;base64,AAAA"' in page
        and 'alt="timeline of 2 runs"' in page
    )
    assert "cells: 0%" not in page and "model_id" not in page


def test_a_page_has_a_table_of_contents_its_style_once_and_the_parameters_used(filled):
    html = tables.section_html(filled["table-5"])
    text = executed([output(**{"text/html": html})] * 2)
    page = report.notebook_page(text, "A <title>")
    assert '<a class="level-2" href="#a-section">A section</a>' in page
    assert page.count(tables.STYLE) == 1 and "<title>A &lt;title&gt;</title>" in page
    notebook = nbformat.reads(text, as_version=4)
    notebook.cells[2].metadata.tags = ["parameters"]
    notebook.cells.append(nbformat.v4.new_code_cell("quick = True"))
    notebook.cells[-1].metadata.tags = ["injected-parameters"]
    page = report.notebook_page(nbformat.writes(notebook), "Title")
    assert "quick = True" in page and "pearl.show" not in page


def test_the_index_counts_cells_and_verdicts_by_kind(filled):
    entry = report.summary(load_paper("pearl"), filled, "quick")
    assert entry["counts"]["paper"]["cells"] == sum(
        len(f.table.cells) for f in filled.values()
    )
    found = [c for f in filled.values() for c in f.claims if c.kind == "virtual"]
    by_verdict = {k: n for k, n in entry["counts"]["virtual"].items() if k != "cells"}
    assert sum(by_verdict.values()) == len(found) and by_verdict["own no"] > 0
    assert by_verdict["n/a"] == sum(c.holds == "n/a" for c in found)
    html = report.index_page(
        [entry | {"made": "2026-01-01 10:00, commit abc"}], {"cpu": "<x>"}
    )
    assert "commit abc" in html and "quick" in html and "&lt;x&gt;" in html


def test_folded_verdicts_say_each_source_and_count_our_own_checks_apart(filled):
    html = tables.verdicts_html(filled, "no", ("paper",))
    broken = {
        (f.table.item, c.claim)
        for f in filled.values()
        for c in f.claims
        if c.kind == "paper" and c.holds == "no"
    }
    sources = [
        c.source
        for f in filled.values()
        for c in f.table.claims
        if (f.table.item, c.id) in broken
    ]
    assert sources and all(
        f"<span class=small>{escape(s)}</span>" in html for s in sources
    )
    own = sum(s.startswith(("audit", "ours")) for s in sources)
    assert 0 < own < len(sources)
    assert (
        f"<summary>{len(sources)} verdicts on claims that do not hold: {len(sources) - own} on "
        f"the paper's own, {own} on our checks</summary>"
    ) in html


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_offline_and_draw_their_charts(filled, tmp_path, scheme):
    browser_of = pytest.importorskip("playwright.sync_api").sync_playwright
    from shutil import which

    from plotly.offline import get_plotlyjs

    chromium = (
        which("chromium")
        or which("chromium-browser")
        or pytest.skip("no chromium here")
    )
    (tmp_path / "plotly.min.js").write_text(get_plotlyjs())
    outputs = [
        output(**{"text/html": tables.section_html(filled["table-1"])}),
        plot(charts.chart(filled["table-5"])),
    ]
    (tmp_path / "page.html").write_text(
        report.notebook_page(executed(outputs), "Title")
    )
    asked, errors = [], []
    with browser_of() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        page = browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": 700, "height": 900}
        ).new_page()
        page.on("request", lambda r: asked.append(r.url))
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector(".plotly-chart .main-svg", timeout=20_000)
        width = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert not errors and width <= 700, "a wide table must scroll in its own box"
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
