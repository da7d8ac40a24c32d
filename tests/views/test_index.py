"""The index: its picture, its table of all claims, and links that lead somewhere."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from helpers import late

from speclab.experiment.engines.virtual import example_trace
from speclab.papers.ledger import VerdictLine, read_ledger
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import ENGINE_KINDS
from speclab.views.anchors import cell_anchor, slug
from speclab.views.pages import traces
from speclab.views.pages.committed import with_committed
from speclab.views.pages.entry import ClaimEntry, read_entry
from speclab.views.pages.headlines import (
    NARROW,
    PHONE,
    WIDE,
    caption,
    headline_rows,
    render_headlines,
)
from speclab.views.pages.index import Linker, index_page, summary
from speclab.views.pages.notebook import notebook_page
from speclab.views.pages.places import PageAnchors, find_anchors
from speclab.views.tables.html import section_html
from speclib import paths
from speclib.drawing.text_in_pictures import FONT_SIZE, text_width

PAPERS = ("pearl", "dsi", "duodecoding", "easyspec")
MADE = {"made": "2026-01-01 10:00, commit abc"}

# What an index was made from before it had a table of claims.
OLD_ENTRY = {
    "key": "dsi",
    "title": "An older title",
    "authors": "A. Author",
    "year": 2024,
    "profile": "full",
    "counts": {"paper": {"cells": 3}},
    "summary": "<p>an older summary</p>",
    "headline": "<p>an older table</p>",
    "broken": "",
    "failed": "",
} | MADE


def claim(name: str, *, paper_says: float, **holds_by_kind: str) -> dict:
    """A headline claim with a verdict per kind, each about the number 2."""
    verdicts = []
    for kind, holds in holds_by_kind.items():
        verdict = {"kind": kind, "holds": holds, "value": "2", "number": 2.0}
        verdicts.append(verdict | {"low": 1.9, "high": 2.1})
    return {
        "item": "table-1",
        "id": name,
        "anchor": f"table-1.{name}",
        "text": f"it is {paper_says} times as fast: {name}",
        "is_headline": True,
        "claimed": paper_says,
        "within": 0.05,
        "verdicts": verdicts,
    }


ENTRY = {
    "key": "pearl",
    "title": "PEARL",
    "claims": [
        claim("one", paper_says=2.0, virtual="yes", measured="no"),
        claim("two", paper_says=2.1, virtual="yes", measured="open"),
        claim("three", paper_says=4.0, virtual="no", measured="n/a"),
    ],
} | MADE


@pytest.fixture(scope="module")
def timed(results):
    """Table 5 whose cells have a trace, as those have that were timed."""
    result = results["table-5"]
    cell_results = {}
    for (row, column, _), cell_result in result.cell_results.items():
        trace = example_trace(cell_result.spec).to_json()
        cell_results[row, column, "virtual"] = replace(cell_result, trace=trace)
    return replace(result, cell_results=cell_results)


# -- the picture -----------------------------------------------------------------------
def test_the_caption_counts_the_verdicts_that_the_picture_shows():
    rows = headline_rows([read_entry(ENTRY)])
    text = caption(rows, Linker({}))
    assert "in 3 claims" in text
    assert "By virtual numbers 2 of 3 hold, 1 does not." in text
    assert "By measured numbers 0 of 2 hold, 1 does not, 1 is open." in text
    assert "emulated" not in text
    assert "timeline" not in text

    svg = render_headlines(rows, Linker({}), WIDE)
    signs = Counter(re.findall(r'class="verdict (\w+)"', svg))
    assert signs == {"yes": 2, "no": 2, "open": 1, "na": 1}


def test_each_verdict_has_a_shape_of_its_own_and_no_text_is_small():
    rows = headline_rows([read_entry(ENTRY)])
    svg = render_headlines(rows, Linker({}), WIDE)
    shapes = {}
    for name, content in re.findall(r'<g class="verdict (\w+)">(.*?)</g>', svg):
        without_words = re.sub(r"<text.*?</text>|<title>.*?</title>", "", content)
        shapes[name] = tuple(re.findall(r"<(\w+)", without_words))
    assert len(set(shapes.values())) == len(shapes) == 4

    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    assert min(sizes) >= FONT_SIZE == 14


def test_the_mark_of_a_number_stands_where_its_value_is_on_the_axis():
    rows = headline_rows([read_entry(ENTRY)])
    svg = render_headlines(rows, Linker({}), WIDE)
    ticks = {}
    for x, label in re.findall(r'<text x="([\d.]+)"[^>]*>([\d.]+)</text>', svg):
        ticks[label] = float(x)
    circles = re.findall(r'<g class="virtual"><title>.*?<circle cx="([\d.]+)"', svg)
    assert [float(x) for x in circles] == [pytest.approx(ticks["2"], abs=0.02)] * 3


def test_a_claim_that_holds_down_to_nothing_has_a_band_to_the_end_of_the_axis():
    entry = {
        "key": "pearl",
        "title": "",
        "claims": [claim("a", paper_says=2.0, virtual="yes") | {"within": 1.5}],
    }
    rows = headline_rows([read_entry(entry)])
    svg = render_headlines(rows, Linker({}), WIDE)
    assert "nan" not in svg
    assert "within 150 %" in svg


@pytest.mark.parametrize("width", [NARROW, PHONE])
def test_no_line_of_a_narrow_picture_is_wider_than_it_and_no_labels_touch(width):
    entry = ENTRY | {"claims": [dict(claim) for claim in ENTRY["claims"]]}
    entry["claims"][0]["source"] = "abstract and the first words of the introduction"
    svg = render_headlines(headline_rows([read_entry(entry)]), Linker({}), width)
    for x, size, text in re.findall(
        r'<text x="([\d.]+)" y="[\d.]+" font-size="(\d+)"[^>]*>([^<]+)</text>', svg
    ):
        assert float(x) + text_width(unescape(text), float(size)) <= width
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    assert min(sizes) >= FONT_SIZE

    ticks = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([\d.]+)</text>', svg)
    for (x, y, label), (next_x, next_y, _) in pairwise(ticks):
        if y == next_y:
            assert float(next_x) - float(x) > text_width(label)
    assert {label for *_, label in ticks} >= {"1", "2", "4"}


# -- what the committed ledger adds ----------------------------------------------------
def committed(name: str, kind: str, holds: str, value: str = "3") -> VerdictLine:
    note = "3 (95 %: 2.5 .. 3.5), expected 2"
    return VerdictLine("pearl", "table-1", name, kind, holds, value, "2", note)


COMMITTED = [
    committed("one", "virtual", "no"),  # settled here: ours stays
    committed("one", "emulated", "yes"),  # not run here
    committed("two", "measured", "no"),  # open here
    committed("three", "measured", "open"),  # not judged here
    committed("three@same-devices", "virtual", "yes"),
    VerdictLine("dsi", "table-1", "up-to-1.92", "virtual", "no", "1.4", "1.92"),
    VerdictLine("dsi", "table-1", "no-such-claim", "virtual", "no", "1.4", "1.92"),
]


def with_committed_claims() -> dict[tuple[str, str], ClaimEntry]:
    """The claims of both papers by paper and name."""
    papers = {"dsi": load_paper("dsi")}
    claims = {}
    for paper in with_committed([read_entry(ENTRY)], papers, COMMITTED):
        for claim in paper.claims:
            claims[paper.key, claim.id] = claim
    return claims


def test_the_committed_ledger_speaks_only_where_this_checkout_settles_nothing():
    claims = with_committed_claims()
    assert claims["pearl", "one"].verdict("virtual").committed is None
    emulated = claims["pearl", "one"].verdict("emulated")
    assert emulated.is_committed
    assert (emulated.holds, emulated.number) == ("yes", 3.0)
    assert (emulated.low, emulated.high) == (2.5, 3.5)

    still_ours = claims["pearl", "two"].verdict("measured")
    assert (still_ours.holds, still_ours.is_committed) == ("open", False)
    assert still_ours.settled.holds == "no"
    assert claims["pearl", "two"].verdict("virtual").settled.holds == "yes"
    assert claims["pearl", "three"].verdict("measured").settled.holds == "open"

    assert set(claims) == {("pearl", "one"), ("pearl", "two"), ("pearl", "three")} | {
        ("dsi", "up-to-1.92")
    }
    assert claims["dsi", "up-to-1.92"].is_headline


def test_a_committed_tie_settles_what_is_open_here():
    papers = {"dsi": load_paper("dsi")}
    tie = committed("two", "measured", "tie", "1 of 2")
    (entry, *_) = with_committed([read_entry(ENTRY)], papers, [tie])
    (settled,) = [c.verdict("measured") for c in entry.claims if c.id == "two"]
    assert settled.settled.holds == "tie"


def test_an_interval_of_two_numbers_is_not_that_of_a_committed_value():
    """A window of 6 was highest, at 0.97 to 1.01 of the speed of another."""
    note = "as good as equal: A: 6 over 5 0.99 (95 %: 0.97 .. 1.01)"
    line = VerdictLine("pearl", "table-1", "two", "measured", "tie", "6", "5", note)
    (entry, *_) = with_committed([read_entry(ENTRY)], {}, [line])
    (verdict,) = [c.verdict("measured") for c in entry.claims if c.id == "two"]
    assert (verdict.settled.number, verdict.settled.low) == (6.0, None)


def test_a_tie_is_a_row_of_the_table_and_may_be_filtered_for():
    is_tie = claim("tied", paper_says=2.0, virtual="yes", measured="tie")
    html = index_page([ENTRY | {"claims": [is_tie]}], {})
    assert 'data-kind="measured" data-holds="tie"' in html
    assert '<span class="judged tie"><span class="sign">≈</span> tie' in html
    assert 'name="verdict" value="tie"' in html


def test_committed_numbers_are_hollow_and_marked_and_the_caption_counts_them():
    claims = with_committed_claims()
    entry = ENTRY | {"claims": [claims["pearl", "one"].model_dump()]}
    rows = headline_rows([read_entry(entry)])
    svg = render_headlines(rows, Linker({}), WIDE)
    emulated = re.search(r'<g class="emulated">.*?</g>', svg)[0]
    assert 'fill="#fff"' in emulated.rpartition("<path")[2]
    assert "from the committed ledger" in emulated
    assert ">3.00 *</text>" in svg
    text = caption(rows, Linker({}))
    assert "Hollow marks and numbers with *" in text
    assert "By emulated numbers 1 of 1 hold." in text
    assert "Hollow" not in caption(headline_rows([read_entry(ENTRY)]), Linker({}))


def test_the_index_marks_what_is_committed_and_links_no_report_that_is_not_there():
    papers = {"dsi": load_paper("dsi")}
    html = index_page([ENTRY], {}, committed=COMMITTED, all_papers=papers)
    words = " ".join(html.split())
    assert words.count("in the committed ledger:") == 2
    assert words.count("from the committed ledger</span>") == 2
    assert "Not run in this checkout" in words
    assert 'href="dsi.html"' not in html
    assert 'href="pearl.html"' in html


# -- headlines -------------------------------------------------------------------------
def test_headlines_of_every_paper_are_ratios_that_its_tables_claim():
    for key in PAPERS:
        paper = load_paper(key)
        assert paper.facts["headlines"]
        for item, name in paper.facts["headlines"]:
            claims = {claim.id: claim for claim in paper.table(item).claims}
            assert claims[name].kind == "ratio"
            assert claims[name].expected > 1
            assert claims[name].source.startswith("abstract")


# -- the table -------------------------------------------------------------------------
def test_every_judged_claim_is_a_row_and_every_verdict_a_cell(results):
    entry = json.loads(json.dumps(summary(load_paper("pearl"), results, "quick")))
    html = index_page([entry | MADE], {})
    judged = []
    for result in results.values():
        judged += [(row.item, row.claim, row.kind) for row in result.claims]
    rows = set(re.findall(r'<tr id="pearl\.([^"]+)"', html))
    assert rows == {f"{item}.{slug(name)}" for item, name, _ in judged}
    assert len(re.findall(r'data-holds="[^"]', html)) == len(judged)


def test_a_claim_about_speedups_has_a_second_verdict_over_the_same_devices(results):
    entry = json.loads(json.dumps(summary(load_paper("pearl"), results, "quick")))
    html = index_page([entry | MADE], {})
    second_values = Counter()
    for result in results.values():
        second_values.update(row.value for row in result.claims_over_same_devices)
    assert second_values.total() > 0

    verdicts = re.findall(r'<div class="second">.*?</div>', html, re.S)
    values = re.findall(r'<b class="value">([^<]*)</b>', "".join(verdicts))
    assert Counter(values) == second_values
    assert "A claim about a speed-up has a second verdict" in html


def test_rows_are_filtered_by_both_verdicts():
    second = {"kind": "virtual", "holds": "no", "value": "0.9", "number": 0.9}
    judged = claim("a", paper_says=2, virtual="yes")
    judged["verdicts"][0]["over_same_devices"] = second
    html = index_page([{"key": "pearl", "title": "", "claims": [judged]}], {})
    cell = re.search(r'<td data-kind="virtual".*?</td>', html, re.S)[0]
    assert 'data-holds="yes no"' in cell
    assert "over the same devices:" in cell
    assert '<b class="value">0.9</b>' in cell


def test_without_second_verdicts_nothing_is_said_of_them():
    assert "over the same devices" not in index_page([ENTRY], {})


def test_a_papers_section_lists_what_does_not_hold_and_what_is_open(results):
    entry = summary(load_paper("pearl"), results, "quick")
    words_of = {"no": "that do not hold", "open": "that are open"}
    sentences_of = {"no": entry["broken"], "open": entry["unsettled"]}
    seen = 0
    for holds, words in words_of.items():
        count = 0
        for result in results.values():
            judged = [c for c in result.claims if c.kind in ENGINE_KINDS]
            count += sum(claim.holds == holds for claim in judged)
        says_so = f"{count} verdicts on claims {words}" in sentences_of[holds]
        assert says_so == (count > 0)
        seen += count
    assert seen
    assert entry["unsettled"] in index_page([entry | MADE], {})


@pytest.mark.parametrize(
    "holds, words",
    [
        ("yes", "holds"),
        ("no", "does not hold"),
        ("open", "open"),
        ("n/a", "not judged"),
        ("a verdict of tomorrow", "not judged"),
    ],
)
def test_a_verdict_is_a_sign_and_words(holds, words):
    entry = {
        "key": "pearl",
        "title": "",
        "claims": [claim("a", paper_says=2, virtual=holds)],
    }
    html = index_page([entry], {})
    cell = re.search(r'<td data-kind="virtual".*?</td>', html, re.S)[0]
    sign, text = re.search(r'class="sign">(.)</span> ([\w ]+)</span>', cell).groups()
    assert text == words
    assert sign in "✓✗◇–"


def test_a_verdict_is_the_same_on_the_index_and_below_its_table(results):
    entry = summary(load_paper("pearl"), results, "quick") | MADE
    sign_on_index = r'class="sign">(.)</span> ([\w ]+)</span>'
    on_index = set(re.findall(sign_on_index, index_page([entry], {})))
    below_tables = set()
    for result in results.values():
        sign = r'class="verdict \w+">(.) ([\w ]+)</span>'
        below_tables |= set(re.findall(sign, section_html(result)))
    assert {words for _, words in below_tables} >= {"holds", "open"}
    assert below_tables <= on_index


def test_an_entry_of_older_form_has_its_section_and_says_what_is_missing():
    html = index_page([OLD_ENTRY, ENTRY], {})
    assert "<p>an older summary</p>" in html
    assert "<p>an older table</p>" in html
    assert "The claims of dsi are missing here" in html
    assert html.count("<tr id=") == 3
    assert "The claims of pearl" not in html


@pytest.mark.parametrize(
    "damaged",
    [{"claims": 7}, {"claims": [{"item": 1}]}, {"year": "soon"}, {"title": None}],
)
def test_what_cannot_be_read_of_an_entry_is_left_out(damaged):
    html = index_page([OLD_ENTRY | damaged, ENTRY], {})
    assert "an older summary" in html
    assert html.count("<tr id=") == 3


def test_texts_of_an_entry_cannot_end_its_page():
    entry = {
        "key": "pearl",
        "title": "<script>",
        "claims": [
            claim("x", paper_says=2.0, virtual="yes") | {"text": "<b>bold</b> & more"}
        ],
    }
    html = index_page([entry], {})
    assert "<b>bold</b>" not in html
    assert "&lt;b&gt;bold&lt;/b&gt;" in html


# -- anchors and links -----------------------------------------------------------------
def test_no_two_numbers_of_a_paper_share_an_anchor():
    places = set()
    for row in read_ledger(paths.ROOT / "reports" / "ledger.csv"):
        places.add((row.paper, row.item, row.row, row.column, row.kind))
    anchors = Counter()
    for paper, *place in places:
        anchors[paper, cell_anchor(*place)] += 1
    shared = [anchor for anchor, count in anchors.items() if count > 1]
    assert shared == []


def test_a_name_of_a_place_is_spelled_from_its_label():
    assert slug("Llama2 7&70B, bf16") == "llama2-7-70b-bf16"
    assert slug("c+2") != slug("c-2")
    anchor = cell_anchor("table-5", "3", "CodeLlama 7&34", "measured")
    assert anchor == "table-5.3.codellama-7-34.measured"


class Ids(HTMLParser):
    """The ids of a page and the addresses of its links, by a parser not ours."""

    def __init__(self, html: str):
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if "href" in attributes:
            self.links.append(attributes["href"])


def pages_of(results) -> dict[str, str]:
    """A paper's pages and the index, by the names of their files."""
    paper = load_paper("pearl")
    outputs = []
    for result in results.values():
        data = {"text/html": section_html(result)}
        outputs.append(late.nbformat.v4.new_output("display_data", data))
    cell = late.nbformat.v4.new_code_cell("show()", outputs=outputs)
    notebook = late.nbformat.writes(late.nbformat.v4.new_notebook(cells=[cell]))

    on_page = find_anchors(notebook_page(notebook, "Title"))
    of_traces = traces.traces_page(paper, results, on_page)
    places = PageAnchors("pearl", on_page, find_anchors(of_traces))
    entry = json.loads(json.dumps(summary(paper, results, "quick")))
    return {
        "pearl.html": notebook_page(notebook, "Title", places),
        "pearl-traces.html": of_traces,
        "index.html": index_page([entry | MADE], {}, {"pearl": places}),
    }


def test_every_link_between_the_pages_leads_to_a_place_that_exists(results, timed):
    html_by_file = pages_of(results | {"table-5": timed})
    parsed = {name: Ids(html) for name, html in html_by_file.items()}
    links_to = Counter()
    for name, page in parsed.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            file, _, fragment = link.partition("#")
            target = file or name
            if fragment:
                assert fragment in parsed[target].ids, link
                links_to[name, target] += 1

    cells = len(timed.cell_results)
    claims = sum(len(result.table.claims) for result in results.values())
    judged = {(row.item, row.claim) for r in results.values() for row in r.claims}
    assert links_to["pearl.html", "pearl-traces.html"] == cells
    assert links_to["pearl-traces.html", "pearl.html"] == cells
    assert claims >= len(judged) <= links_to["index.html", "pearl.html"]
    assert links_to["index.html", "pearl-traces.html"] > 0


def test_without_pages_the_index_has_no_links_into_them(results):
    entry = summary(load_paper("pearl"), results, "quick") | MADE
    links = Ids(index_page([entry], {})).links
    assert [link for link in links if "#" in link] == ["#claims"]  # its own


# -- timelines -------------------------------------------------------------------------
def test_a_paper_whose_cells_were_not_timed_has_no_page_of_timelines(results):
    assert traces.traces_page(load_paper("pearl"), results) == ""


def test_cells_of_one_run_share_its_picture(results, timed):
    again = replace(timed, table=results["table-4"].table)
    html = traces.traces_page(load_paper("pearl"), {"table-5": timed, "table-4": again})
    runs = {cell_result.spec for cell_result in timed.cell_results.values()}
    assert html.count("<svg ") == 2 * len(runs)  # the plot is an svg inside the picture
    assert "Under other items stand the runs of:" in html


def test_a_page_of_many_runs_shows_less_of_each(timed, monkeypatch):
    paper = load_paper("pearl")
    page = traces.traces_page(paper, {"table-5": timed})
    assert "until 24 tokens were written" in page

    monkeypatch.setattr(traces, "MOST_LETTERS", len(page) - 1)
    page = traces.traces_page(paper, {"table-5": timed})
    assert "until 16 tokens were written" in page


def test_the_texts_of_a_timeline_are_those_of_the_run(timed):
    html = unescape(traces.traces_page(load_paper("pearl"), {"table-5": timed}))
    assert re.search(r"<h3>PEARL \(γ = 3\), virtual</h3>", html)
    assert "time in ms (virtual; cut off here" in html
