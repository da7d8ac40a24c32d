"""The index: its picture, its table of all claims, and links that lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from helpers import late
from helpers.tables import read_ledger

from speclab.papers.ledger import VerdictLine
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import Number, mean_number
from speclab.papers.paper_schema import ENGINE_KINDS, Claim
from speclab.views.anchors import cell_anchor, slug
from speclab.views.pages.entry import ClaimEntry, Judged, PaperEntry
from speclab.views.pages.headlines import (
    NARROW,
    PHONE,
    WIDE,
    caption,
    headline_rows,
    render_headlines,
)
from speclab.views.pages.index import index_page, summary
from speclab.views.pages.notebook import notebook_page
from speclab.views.pages.places import find_anchors, links_to
from speclab.views.pages.site import report_page
from speclab.views.tables.html import section_html
from speclib import paths
from speclib.drawing.text_in_pictures import FONT_SIZE, text_width

PAPERS = ("pearl", "dsi", "duodecoding", "easyspec")
NO_LINKS = links_to({})
THREE = mean_number([1.98, 2.0, 2.02])  # 2 with an interval of 3 requests


def judged(kind: str, holds: str, number: Number = THREE) -> Judged:
    value = f"{number.value:g}"
    is_judged = holds != "not judged"
    note = "" if is_judged else "other models and hardware than the paper's"
    line = VerdictLine("pearl", "table-1", "a", kind, holds, value, "2", note)
    return Judged(line, number)


def claim(name: str, *, paper_says: float, **holds_by_kind: str) -> ClaimEntry:
    """A headline claim with a verdict per kind, each about the number 2."""
    text = f"it is {paper_says} times as fast: {name}"
    source = "abstract and the first words of the introduction"
    about = Claim(
        id=name,
        kind="ratio",
        text=text,
        source=source,
        expected=paper_says,
        within=0.05,
    )
    verdicts = {kind: judged(kind, holds) for kind, holds in holds_by_kind.items()}
    return ClaimEntry("table-1", about, verdicts, {}, is_headline=True)


def entry_of(*claims: ClaimEntry) -> PaperEntry:
    return PaperEntry(load_paper("pearl"), list(claims))


ENTRY = entry_of(
    claim("one", paper_says=2.0, virtual="yes", measured="no"),
    claim("two", paper_says=2.1, virtual="yes", measured="open"),
    claim("three", paper_says=4.0, virtual="no", measured="not judged"),
)


# -- the picture -----------------------------------------------------------------------
def test_the_caption_counts_the_verdicts_that_the_picture_shows():
    rows = headline_rows([ENTRY])
    text = caption(rows)
    assert "in 3 claims" in text
    assert "By virtual numbers 2 of 3 hold, 1 does not." in text
    assert "By measured numbers 0 of 2 hold, 1 does not, 1 is open." in text
    assert "emulated" not in text
    assert "Measured numbers without a verdict are of other models" in text

    svg = render_headlines(rows, NO_LINKS, WIDE)
    signs = Counter(re.findall(r'class="verdict ([\w-]+)"', svg))
    assert signs == {"yes": 2, "no": 2, "open": 1, "not-judged": 1}


def test_a_number_without_a_verdict_stands_in_the_picture_with_a_dash_and_no_cross():
    stand_in = claim("of a laptop", paper_says=4.43, measured="not judged")
    svg = render_headlines(headline_rows([entry_of(stand_in)]), NO_LINKS, WIDE)
    assert 'class="verdict no"' not in svg
    sign = re.search(r'<g class="verdict not-judged">(.*?)</g>', svg)[1]
    assert "<title>measured: not judged</title>" in sign
    assert ">2.00</text>" in sign
    assert re.search(r'<g class="measured"><title>measured: 2.00, 95 %', svg)


def test_each_verdict_has_a_shape_of_its_own_and_no_text_is_small():
    svg = render_headlines(headline_rows([ENTRY]), NO_LINKS, WIDE)
    shapes = {}
    for name, content in re.findall(r'<g class="verdict ([\w-]+)">(.*?)</g>', svg):
        without_words = re.sub(r"<text.*?</text>|<title>.*?</title>", "", content)
        shapes[name] = tuple(re.findall(r"<(\w+)", without_words))
    assert len(set(shapes.values())) == len(shapes) == 4

    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    assert min(sizes) >= FONT_SIZE == 14


def test_the_mark_of_a_number_stands_where_its_value_is_on_the_axis():
    svg = render_headlines(headline_rows([ENTRY]), NO_LINKS, WIDE)
    ticks = {}
    for x, label in re.findall(r'<text x="([\d.]+)"[^>]*>([\d.]+)</text>', svg):
        ticks[label] = float(x)
    circles = re.findall(r'<g class="virtual"><title>.*?<circle cx="([\d.]+)"', svg)
    assert [float(x) for x in circles] == [pytest.approx(ticks["2"], abs=0.02)] * 3


def test_a_claim_that_holds_down_to_nothing_has_a_band_to_the_end_of_the_axis():
    entry = claim("a", paper_says=2.0, virtual="yes")
    wide = replace(entry, claim=entry.claim.model_copy(update={"within": 1.5}))
    svg = render_headlines(headline_rows([entry_of(wide)]), NO_LINKS, WIDE)
    assert "nan" not in svg
    assert "within 150 %" in svg


@pytest.mark.parametrize("width", [NARROW, PHONE])
def test_no_line_of_a_narrow_picture_is_wider_than_it_and_no_labels_touch(width):
    svg = render_headlines(headline_rows([ENTRY]), NO_LINKS, width)
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
    html = index_page([summary(load_paper("pearl"), results)], {})
    judged = []
    for result in results.values():
        judged += [(row.item, row.claim, row.kind) for row in result.claims]
    rows = set(re.findall(r'<tr id="pearl\.([^"]+)"', html))
    assert rows == {f"{item}.{slug(name)}" for item, name, _ in judged}
    assert len(re.findall(r'data-holds="[^"]', html)) == len(judged)


def test_a_claim_about_speedups_has_a_second_verdict_over_the_same_devices(results):
    html = index_page([summary(load_paper("pearl"), results)], {})
    second_values = Counter()
    for result in results.values():
        second_values.update(row.value for row in result.claims_over_same_devices)
    assert second_values.total() > 0

    verdicts = re.findall(r'<div class="second">.*?</div>', html, re.S)
    values = re.findall(r'<b class="value">([^<]*)</b>', "".join(verdicts))
    assert Counter(v.removeprefix("in order in ") for v in values) == second_values
    assert "A claim about a speed-up has a second verdict" in html


def test_rows_are_filtered_by_both_verdicts():
    entry = claim("a", paper_says=2, virtual="yes")
    second = {"virtual": judged("virtual", "no", Number(0.9))}
    html = index_page([entry_of(replace(entry, over_same_devices=second))], {})
    cell = re.search(r'<td data-kind="virtual".*?</td>', html, re.S)[0]
    assert 'data-holds="yes no"' in cell
    assert "over the same devices:" in cell
    assert '<b class="value">0.9</b>' in cell


def test_without_second_verdicts_nothing_is_said_of_them():
    assert "over the same devices" not in index_page([ENTRY], {})


def test_a_papers_section_lists_what_does_not_hold_and_what_is_open(results):
    entry = summary(load_paper("pearl"), results)
    words_of = {"no": "that do not hold", "open": "that are open"}
    sentences_of = {"no": entry.broken, "open": entry.unsettled}
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
    assert entry.unsettled in index_page([entry], {})


@pytest.mark.parametrize(
    "holds, words",
    [
        ("yes", "holds"),
        ("no", "does not hold"),
        ("open", "open"),
        ("not judged", "not judged"),
    ],
)
def test_a_verdict_is_a_sign_and_words(holds, words):
    html = index_page([entry_of(claim("a", paper_says=2, virtual=holds))], {})
    cell = re.search(r'<td data-kind="virtual".*?</td>', html, re.S)[0]
    sign, text = re.search(r'class="sign">(.)</span> ([\w ]+)</span>', cell).groups()
    assert text == words
    assert sign in "✓✗◇–"


def test_a_verdict_stands_with_its_interval_and_n():
    one = claim("one", paper_says=2, measured="open")
    one.verdicts["measured"] = judged("measured", "open", mean_number([2.0]))
    three = claim("three", paper_says=4, measured="not judged")
    html = index_page([entry_of(one, three)], {})
    details = re.findall(r'<span class="detail">(.*?)</span>', html)
    assert "n 1" in details
    # The standard deviation of three is 0.02: 2 -+ 4.303 * 0.02 / 3**0.5.
    assert "95 %: 1.95 .. 2.05 (n 3)" in details


def test_a_verdict_of_two_words_can_be_filtered_for():
    """What a cell holds is read word by word."""
    html = index_page([ENTRY], {})
    offered = re.findall(r'name="verdict" value="([^"]*)"', html)
    held = set(re.findall(r'data-holds="([^"]+)"', html))
    assert held == {"yes", "no", "open", "na"} == set(offered)


def test_a_verdict_is_the_same_on_the_index_and_below_its_table(results):
    entry = summary(load_paper("pearl"), results)
    sign_on_index = r'class="sign">(.)</span> ([\w ]+)</span>'
    on_index = set(re.findall(sign_on_index, index_page([entry], {})))
    below_tables = set()
    for result in results.values():
        sign = r'class="verdict \w+">(.) ([\w ]+)</span>'
        below_tables |= set(re.findall(sign, section_html(result)))
    assert {words for _, words in below_tables} >= {"holds", "open"}
    assert below_tables <= on_index


def test_texts_of_an_entry_cannot_end_its_page():
    entry = claim("x", paper_says=2.0, virtual="yes")
    text = {"text": "<b>bold</b> & more"}
    bold = replace(entry, claim=entry.claim.model_copy(update=text))
    html = index_page([entry_of(bold)], {})
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

    page = notebook_page(notebook, "Title")
    index = index_page([summary(paper, results)], {}, {"pearl": find_anchors(page)})
    return {"pearl.html": page, "index.html": index}


def test_every_link_between_the_pages_leads_to_a_place_that_exists(results):
    html_by_file = pages_of(results)
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

    judged = {(row.item, row.claim) for r in results.values() for row in r.claims}
    assert links_to["index.html", "pearl.html"] >= len(judged) > 0


def test_without_pages_the_index_has_no_links_into_them(results):
    links = Ids(index_page([summary(load_paper("pearl"), results)], {})).links
    assert [link for link in links if "#" in link] == ["#claims"]  # its own
    assert "pearl.html" not in links


def test_the_sites_index_has_the_verdicts_of_a_file_and_leads_to_headings_of_texts():
    name = "up-to-4.43-over-ar"
    line = VerdictLine("pearl", "table-1", name, "virtual", "no", "3.1", "4.43")
    same_devices = line._replace(claim=f"{name}@same-devices", value="1.4")
    note = "not judged: other models and hardware than the paper's"
    measured = line._replace(kind="measured", holds="not judged", note=note)
    lines = [line, same_devices, measured]
    html = report_page(lines, {"pearl": load_paper("pearl")})
    assert html.count("<tr id=") == 1
    assert html.count("not judged</span> <b") == 1
    assert "<summary>why</summary>other models and hardware than the paper" in html
    assert 'data-holds="no no"' in html
    assert '<b class="value">1.4</b>' in html
    assert "By virtual numbers 0 of 1 hold, 1 does not." in html
    heading = "pearl.html#table-1-speed-up-on-humaneval-six-methods-six-model-pairs"
    assert heading in Ids(html).links
