"""Tables as HTML and Markdown: every number with its kind, source and verdict."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape

import pytest
from helpers.tables import rows_of

from speclab.papers.fill import Known, fill
from speclab.papers.ledger import DEVICE_SECONDS, LedgerLine, VerdictLine
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import Number, mean_number
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import TableResult
from speclab.views.tables.grid import Entry, Source, build_grid, write_difference
from speclab.views.tables.html import prose_html, section_html, summary_html
from speclab.views.tables.markdown import section_md, summary_md
from speclab.views.tables.verdicts import count

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
    source="measured 2026-01-01T09:00:00",
    note="dilated; c 3.1",
)


@pytest.fixture(scope="module")
def measured() -> TableResult:
    """Table 1 with two prompts of every measured cell, on a machine called "here".

    Plain decoding writes 8 / (4.5 - 0.5) = 2 tokens a second after the first; a method
    8 / (2 - 0.5) = 5.33 and 8 / (2.5 - 0.5) = 4. So each speed-up is 2.667 and 2, and
    its geometric mean 2.309.
    """
    table = load_paper("pearl").table("table-1")
    cells = cells_to_run(table, ("measured",))
    rows = []
    for spec in dict.fromkeys(cell.spec for cell in cells):
        rows += rows_of(spec)
    return fill(table, cells, Known.of_rows(rows), "here", ("measured",))


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


def test_numbers_in_brackets_stand_with_their_cell(results):
    result = results["table-4"]
    row, column = "PEARL w/o pre-verify", "Llama 2 7B&70B"
    entry = build_grid(result).entry(row, column, PAPER)
    assert (entry.text, entry.bracket) == ("2.51", "(0.26)")
    assert "0.36" in entry.note
    assert "| 2.51† (0.26) |" in section_md(result)
    assert "<small>(0.26)</small>" in section_html(result)


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


def test_another_machines_numbers_are_a_column_of_their_own(results):
    result = results["table-5"]
    of_another_item = ELSEWHERE._replace(item="table-6", value=77.7)

    text = section_md(result, [ELSEWHERE, of_another_item])
    assert "measured @ epyc-64c" in text
    assert "51.50" in text
    assert "77.7" not in text
    source = "epyc-64c/bfloat16/1, measured 2026-01-01: hub/x (dilated)"
    assert f"measured: {source}" in text

    html = section_html(result, [ELSEWHERE])
    assert "measured @ epyc-64c" in html
    assert 'title="95 %: 50.00 .. 53.00; n 8; dilated; c 3.1"' in html
    assert "<small>n 8</small>" in html
    assert "| 51.50 | 50.00 .. 53.00 (n 8) |" in text


def test_a_number_of_one_prompt_says_so_and_has_no_interval(results):
    result = TableResult(results["table-5"].table, "here")
    one = mean_number([2.5])
    result.add("3", "CodeLlama 7&34", "measured", one, setup="x@here/f/1")
    assert "| 2.50 | n 1 |" in section_md(result)
    assert "<small>n 1</small>" in section_html(result)
    assert "95 %" not in section_html(result)


def test_cells_that_are_still_to_be_run_say_so_one_by_one_or_by_kind(results):
    result = results["table-5"]
    cell = "3", "CodeLlama 7&34"
    of_cell = [line for line in result.lines if (line.row, line.column) == cell]
    lines = [line for line in result.lines if line not in of_cell]
    left_out = {(*cell, "virtual"), (*cell, "measured")}
    waiting = replace(result, lines=lines, left_out=left_out)
    assert build_grid(waiting).cells[cell] == {Source("virtual"): Entry("not run yet")}
    html, text = section_html(waiting), section_md(waiting)
    assert html.count(">not run yet</td>") == 1
    for page in (html, text):
        assert "not run yet: measured" in page
    assert "not run yet" not in section_html(result) + section_md(result)


def test_a_cell_that_failed_is_shown_as_failed(results):
    result = results["table-5"]
    row, column = "3", "CodeLlama 7&34"
    failed = replace(
        result,
        lines=[
            line for line in result.lines if (line.row, line.kind) != (row, "virtual")
        ],
        left_out={(row, column, "virtual")},
        errors={f"table-5, {row}, {column}: virtual pearl(gamma=3)": "no <file>"},
    )

    html = section_html(failed)
    assert ">failed</td>" in html
    assert "no &lt;file&gt;" in html
    assert "no <file>" not in html


def test_a_disturbed_number_has_a_sign_and_a_line_below_the_table_explains_it(results):
    sign = "‡: other programs kept the machine busy while this was measured"
    result = results["table-5"]
    assert sign not in section_html(result)
    assert sign not in section_md(result)

    disturbed = TableResult(result.table, "here")
    for label, is_busy in (("2", False), ("3", True)):
        number = Number(41.5, is_busy=is_busy)
        disturbed.add(label, "CodeLlama 7&34", "measured", number, note="c 3.1")
    notes = [row.note for row in disturbed.lines]
    assert notes == [
        "c 3.1",
        "c 3.1; disturbed: other programs kept the machine busy",
    ]
    html, text = section_html(disturbed), section_md(disturbed)
    assert html.count("<sup>‡</sup>") == 1
    assert html.count(sign) == text.count(sign) == 1
    assert "41.50‡" in text


def test_markdown_tables_have_equal_columns(results):
    for result in results.values():
        for table in re.findall(r"(?:^\|.*\|\n?)+", section_md(result), re.M):
            pipes_per_line = set()
            for line in table.strip().splitlines():
                pipes_per_line.add(len(re.findall(r"(?<!\\)\|", line)))
            assert len(pipes_per_line) == 1, table


# -- verdicts --------------------------------------------------------------------------
def test_open_verdicts_are_counted_apart_and_shown_with_the_reason(results):
    """Of table 1, one claim of the paper and one check of ours are made open."""
    result = results["table-1"]
    own = next(c for c in result.table.claims if c.source.startswith("audit"))
    papers = next(c for c in result.table.claims if c.source.startswith("section"))
    note = "PEARL (ours) / Llama2 7&70B: not run yet"
    verdicts = []
    for claim in (own, papers):
        row = VerdictLine(
            "pearl", "table-1", claim.id, "measured", "open", "", "", note
        )
        verdicts.append(row)
    unsettled = {
        "table-1": replace(result, claims=verdicts, claims_over_same_devices=[])
    }

    counts = count(unsettled)["measured"]
    assert (counts["open"], counts["own open"]) == (1, 1)
    assert sum(counts.values()) == 2
    assert "that are open" in summary_html(unsettled)
    assert "| that are open |" in summary_md(unsettled)

    html = section_html(unsettled["table-1"])
    assert html.count('<span class="verdict open">◇ open</span>') == 2
    assert html.count("Llama2 7&amp;70B: not run yet") == 2


def test_what_a_stand_in_cannot_say_is_shown_beside_the_print_without_a_cross(measured):
    """That small models reach 2.31 does not refute that the paper's reached 4.43."""
    claim = next(c for c in measured.table.claims if c.id == "up-to-4.43-over-ar")
    html, text = section_html(measured), section_md(measured)
    why = "other models and hardware than the paper's"
    assert f"– not judged **2.309** ({why})" in text
    line = next(line for line in html.splitlines() if claim.text in line)
    of_claim = html[html.index(line) :].partition("</tr>")[0]
    assert '<span class="verdict na">– not judged</span>' in of_claim
    assert "<span class=value>2.309</span>" in of_claim
    assert f"<div class=small>{why.replace(chr(39), '&#39;')}</div>" in of_claim
    assert "verdict no" not in of_claim

    counts = count({"table-1": measured})["measured"]
    held = Counter(row.holds for row in measured.claims if row.kind == "measured")
    assert counts["not judged"] == held["not judged"] > 0


def test_a_table_says_whose_machine_its_measured_numbers_are_of(measured):
    machine = r"here/float32/\d+, measured 2026-01-02: embedded/codellama-7b-34b"
    assert re.search(f"(?m)^measured: {machine}", section_md(measured))
    assert re.search(f"measured</dt><dd>{machine}", section_html(measured))


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


def test_device_seconds_are_a_number_of_their_own_where_a_column_asks_for_them():
    table = load_paper("pearl").table("extra-3")
    row, column = "PEARL: PEARL, 4 GPUs", "device-seconds per token"
    result = TableResult(table)
    for place, metric, value in (
        ("speed-up", "speedup", 3.5),
        ("speed-up", DEVICE_SECONDS, 0.777),
        (column, DEVICE_SECONDS, 0.125),
    ):
        result.add(row, place, "virtual", value, metric=metric)

    text = section_md(result)
    assert "0.1250" in text
    assert "0.777" not in text
