"""Tables as HTML and Markdown: every number with its kind, source and verdict."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape

import pytest

from speclab.experiment.spec import QUICK
from speclab.papers.ledger import DEVICE_SECONDS, LedgerLine, VerdictLine
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclab.views.tables.cell_text import write_difference
from speclab.views.tables.grid import Source, build_grid
from speclab.views.tables.html import (
    prose_html,
    section_html,
    summary_html,
    verdicts_html,
)
from speclab.views.tables.markdown import section_md, summary_md
from speclab.views.tables.tally import count

PAPER = Source("paper")
ELSEWHERE = LedgerLine(
    paper="pearl",
    item="table-5",
    row="3",
    column="CodeLlama 7&34",
    metric="decode_speed",
    unit="tok/s",
    kind="measured",
    setup="hub/x@epyc-64c/bfloat16/1",
    value=51.5,
    low=50.0,
    high=53.0,
    n=8,
    source="measured 2026-01-01 9:00",
    note="dilated; c 3.1",
)


# -- text ------------------------------------------------------------------------------
def test_a_section_says_first_what_to_look_at_and_its_doubts_after_the_numbers(results):
    result = results["table-5"]
    about = result.table.about
    assert "Before trusting it:" in about
    parts = [
        result.table.look,
        about.split()[0],  # the opening
        "46.06",
        result.table.claims[0].text,
        "Before trusting it:",
        "Errata of the print",
    ]

    text = section_md(result).partition("\n\n")[2]  # without the heading
    html = unescape(section_html(result).partition("</style>")[2])
    for page in (text, html):
        places = [page.index(part) for part in parts]
        assert places == sorted(places), page
    assert text.startswith(f"**{result.table.look}**")


def test_what_a_table_is_about_is_shown_as_paragraphs_and_lists():
    for key in ("pearl", "dsi", "duodecoding", "easyspec"):
        for table in load_paper(key).tables.values():
            html = prose_html(table.about)
            items = re.findall(r"(?m)^(?:- |\d\. )", table.about)
            blocks = table.about.strip().split("\n\n")
            lists = [block for block in blocks if re.match(r"- |\d\. ", block)]
            assert html.count("<li>") == len(items)
            assert html.count("<p>") == len(blocks) - len(lists)


def test_a_tag_in_a_text_is_shown_and_not_obeyed():
    assert prose_html("a <b>bold</b> claim") == (
        "<p>a &lt;b&gt;bold&lt;/b&gt; claim</p>\n"
    )


# -- numbers ---------------------------------------------------------------------------
def test_a_cell_shows_its_kinds_side_by_side_with_the_error_against_print(results):
    cell = build_grid(results["table-5"]).cells["3", "CodeLlama 7&34"]

    printed = cell[PAPER]
    assert printed.text == "46.06"
    assert printed.mark == "†"
    assert "41.1" in printed.note

    virtual = cell[Source("virtual")]
    assert re.fullmatch(r"\d\d\.\d\d", virtual.text)
    assert virtual.difference == write_difference(float(virtual.text) / 46.06 - 1)


def test_the_unit_shown_is_the_printed_one(results):
    grid = build_grid(results["table-15"])
    assert grid.unit == "ms"
    assert grid.entry("target", "llama 2 7&70B", PAPER).text == "108.0"


def test_numbers_in_brackets_stand_with_their_cell(results):
    result = results["table-4"]
    row, column = "PEARL w/o pre-verify", "Llama 2 7B&70B"
    entry = build_grid(result).entry(row, column, PAPER)
    assert (entry.text, entry.bracket) == ("2.51", "(0.26)")
    assert "0.36" in entry.note
    assert "| 2.51† (0.26) |" in section_md(result)
    assert "<small>(0.26)</small>" in section_html(result)


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


def test_every_printed_cell_is_in_html_and_markdown(results):
    for result in results.values():
        grid = build_grid(result)
        html = section_html(result)
        text = section_md(result)
        scale = 1000 if result.table.printed_unit == "ms" else 1
        for row, column, value in result.table.cells:
            entry = grid.entry(row, column, PAPER)
            assert float(entry.text) == pytest.approx(value * scale)
            assert f">{entry.text}<" in html
            assert entry.text in text


def test_every_claim_and_erratum_is_shown_with_its_verdict(results):
    for result in results.values():
        html = section_html(result)
        text = section_md(result)
        for claim in result.table.claims:
            assert claim.id in html
            assert claim.text in text
        verdicts = [row.holds for row in result.claims]
        verdicts += [row.holds for row in result.claims_over_same_devices]
        for mark, holds in (("✓ h", "yes"), ("✗ d", "no"), ("◇ open", "open")):
            assert text.count(mark) == html.count(mark) == verdicts.count(holds)
        assert html.count("<b>") == len(result.table.errata)


def test_every_section_says_where_its_numbers_come_from(results):
    text = section_md(results["table-5"])
    assert "paper: arXiv:2408.11850" in text
    assert "virtual: data/latency/pearl/" in text


def test_another_machines_numbers_are_a_column_of_their_own(results):
    result = results["table-5"]
    of_another_item = ELSEWHERE._replace(item="table-6", value=77.7)

    text = section_md(result, [ELSEWHERE, of_another_item])
    assert "measured @ epyc-64c" in text
    assert "51.50" in text
    assert "77.7" not in text
    source = "epyc-64c/bfloat16/1, n 8, measured 2026-01-01: hub/x (dilated)"
    assert f"measured: {source}" in text

    html = section_html(result, [ELSEWHERE])
    assert "measured @ epyc-64c" in html
    assert 'title="95 %: 50.00 .. 53.00 (n 8); dilated; c 3.1"' in html


def test_a_cell_that_failed_is_shown_as_failed(results):
    result = results["table-5"]
    rows = list(result.lines)
    first_virtual = next(i for i, row in enumerate(rows) if row.kind == "virtual")
    failed_row = rows[first_virtual]._replace(value=None, note="failed: no <file>")
    rows[first_virtual] = failed_row
    errors = {"table-5, 2: pearl": "no <file>"}

    html = section_html(replace(result, lines=rows, claims=[], errors=errors))
    assert ">failed</td>" in html
    assert "no &lt;file&gt;" in html
    assert "no <file>" not in html


def test_a_number_of_an_earlier_run_has_a_sign_and_a_line_explains_it(results):
    sign = "§: not run yet this time; the number is that of an earlier run"
    result = results["table-5"]
    assert sign not in section_md(result)

    row, column = "3", "CodeLlama 7&34"
    rows = [
        r for r in result.lines if (r.row, r.column, r.kind) == (row, column, "virtual")
    ]
    place = (row, column, "virtual")
    empty = TableResult(result.table, result.profile, earlier={place: rows[0]})
    html, text = section_html(empty), section_md(empty)
    assert sign in html
    assert sign in text
    assert f"{rows[0].value:.2f}§" in text


def test_a_disturbed_number_has_a_sign_and_a_line_below_the_table_explains_it(results):
    sign = "‡: other programs kept the machine busy while this was measured"
    result = results["table-5"]
    assert sign not in section_html(result)
    assert sign not in section_md(result)

    # Filled again with one cell disturbed, as an engine would say it.
    table = result.table
    row, column = "3", "CodeLlama 7&34"
    value = result.values["virtual"][row, column]
    disturbed = TableResult(
        table, result.profile, disturbed={(row, column, "measured")}
    )
    for label in ("2", "3"):
        disturbed.add(
            row=label,
            column=column,
            metric=table.metric,
            unit=table.unit,
            kind="measured",
            setup="x@here/f/1",
            value=value,
            note="c 3.1",
        )
    notes = [row.note for row in disturbed.lines]
    assert notes == [
        "c 3.1",
        "c 3.1; disturbed: other programs kept the machine busy",
    ]
    html, text = section_html(disturbed), section_md(disturbed)
    assert html.count("<sup>‡</sup>") == 1
    assert html.count(sign) == text.count(sign) == 1
    assert f"{value:.2f}‡" in text


def test_a_number_of_rest_has_a_sign_that_says_what_it_looks_up(results):
    sign = "¶: what it looks up are tasks of ours"
    result = results["table-5"]
    assert sign not in section_html(result)

    row, column = "3", "CodeLlama 7&34"
    filled = TableResult(result.table, result.profile)
    note = "dilated; datastore: tasks of ours, put together like the prompts; c 3.1"
    filled.add(row, column, "measured", 2.5, setup="x@here/f/1", note=note)
    html, text = section_html(filled), section_md(filled)
    assert html.count("<sup>¶</sup>") == 1
    assert html.count(sign) == text.count(sign) == 1
    assert "2.50¶" in text


def test_wide_tables_scroll_in_their_own_box(results):
    for result in results.values():
        html = section_html(result)
        in_a_box = html.count('<div class="scroll" tabindex=0><table')
        assert html.count("<table") == in_a_box


def test_markdown_tables_have_equal_columns(results):
    for result in results.values():
        for table in re.findall(r"(?:^\|.*\|\n?)+", section_md(result), re.M):
            pipes_per_line = set()
            for line in table.strip().splitlines():
                pipes_per_line.add(len(re.findall(r"(?<!\\)\|", line)))
            assert len(pipes_per_line) == 1, table


# -- verdicts --------------------------------------------------------------------------
def test_folded_verdicts_say_each_source_and_count_our_own_checks_apart(results):
    html = verdicts_html(results, "no", ("paper",))

    sources = []
    for result in results.values():
        broken = {
            row.claim
            for row in result.claims
            if row.kind == "paper" and row.holds == "no"
        }
        sources += [c.source for c in result.table.claims if c.id in broken]
    assert sources
    for source in sources:
        assert f"<span class=small>{source}</span>" in unescape(html)

    own = sum(source.startswith(("audit", "ours")) for source in sources)
    assert 0 < own < len(sources)
    assert (
        f"<summary>{len(sources)} verdicts on claims that do not hold: "
        f"{len(sources) - own} on the paper's own, {own} on our checks</summary>"
    ) in html


def test_open_verdicts_are_counted_apart_and_listed_with_what_would_settle_them(
    results,
):
    """Of table 1, one claim of the paper and one check of ours are made open."""
    result = results["table-1"]
    own = next(c for c in result.table.claims if c.source.startswith("audit"))
    papers = next(c for c in result.table.claims if c.source.startswith("section"))
    note = "not settled: ...; about 23 prompts would settle it"
    verdicts = []
    for claim in (own, papers):
        row = VerdictLine(
            "pearl", "table-1", claim.id, "measured", "open", "", "", note
        )
        verdicts.append(row)
    measured = replace(result, claims=verdicts)

    counts = count({"table-1": measured})["measured"]
    assert (counts["open"], counts["own open"]) == (1, 1)
    assert sum(counts.values()) == 2
    assert "that are open" in summary_html({"table-1": measured})
    assert "| that are open |" in summary_md({"table-1": measured})

    html = verdicts_html({"table-1": measured}, "open", ("measured",))
    assert (
        "<summary>2 verdicts on claims that are open, for want of requests: "
        "1 on the paper's own, 1 on our checks</summary>"
    ) in html
    assert html.count('<span class="verdict open">◇ open</span>') == 2
    assert html.count("about 23 prompts would settle it") == 2


def test_ties_are_counted_apart_and_listed_without_the_order_of_their_numbers(results):
    """What is as good as equal is not "in order in 1 of 1" beside it."""
    result = results["table-1"]
    claim = next(c for c in result.table.claims if c.kind == "order")
    note = "as good as equal: A over B 1.01 (95 %: 0.98 .. 1.04), less than 5 % apart"
    row = VerdictLine(
        "pearl", "table-1", claim.id, "measured", "tie", "1 of 1", "", note
    )
    tied = {"table-1": replace(result, claims=[row])}

    counts = count(tied)["measured"]
    assert counts["tie"] + counts["own tie"] == 1
    assert f"≈ tie ({note})" in section_md(tied["table-1"])
    assert "| that are ties |" in summary_md(tied)
    html = verdicts_html(tied, "tie", ("measured",))
    assert "on claims that are ties: " in html
    assert '<span class="verdict tie">≈ tie</span>' in html
    assert note in html


# -- over the same devices -------------------------------------------------------------
def test_a_speed_up_stands_beside_its_number_over_the_same_devices(results):
    result = results["table-1"]
    place = "PEARL (ours)", "Llama2 7&70B", "virtual"
    first = result.values["virtual"][place[:2]]
    second = result.over_same_devices[place].value
    assert second < first / 2  # four GPUs decode plainly more than twice as fast

    text, html = section_md(result), section_html(result)
    line = next(
        line
        for line in text.splitlines()
        if "PEARL (ours)" in line and f" {first:.2f} " in line
    )
    assert f"| {second:.2f} |" in line
    assert "| over the same devices |" in text
    assert f"<small>same {second:.2f}</small>" in html
    assert "plain decoding on 4 devices is 2.234 times as fast" in html
    meaning = "same: over the same devices, which is the speed-up over the best"
    assert html.count(meaning) == text.count(meaning) == 1


def test_claims_on_speed_ups_have_a_second_column_of_verdicts(results):
    text, html = section_md(results["table-1"]), section_html(results["table-1"])
    head = "virtual, over the same devices"
    assert f"| {head} |" in text
    assert f'<th class="kind" data-kind="virtual">{head}</th>' in html


def test_a_table_without_speed_ups_has_no_second_column(results):
    text = section_md(results["table-5"]) + section_html(results["table-5"])
    assert "same devices" not in text


def test_second_verdicts_are_not_counted_as_further_claims(results):
    table_1 = {"table-1": results["table-1"]}
    counted = count(table_1)["virtual"]
    judged = sum(counted[name] for name in ("yes", "no", "open", "n/a"))
    own = sum(counted[f"own {name}"] for name in ("yes", "no", "open"))

    kinds = Counter(row.kind for row in results["table-1"].claims)
    assert judged + own == kinds["virtual"]


def test_device_seconds_are_a_number_of_their_own_where_a_column_asks_for_them():
    table = load_paper("pearl").table("extra-3")
    row, column = "PEARL: PEARL, 4 GPUs", "device-seconds per token"
    result = TableResult(table, QUICK)
    for place, metric, unit, value in (
        ("speed-up", "speedup", "x", 3.5),
        ("speed-up", DEVICE_SECONDS, "s", 0.777),
        (column, DEVICE_SECONDS, "s", 0.125),
    ):
        result.add(
            row=row,
            column=place,
            metric=metric,
            unit=unit,
            kind="virtual",
            setup="pearl/llama2-7-70",
            value=value,
        )

    text = section_md(result)
    assert "0.1250" in text
    assert "0.777" not in text
