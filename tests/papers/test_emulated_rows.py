"""Emulated cells in tables: what their rows say, and when a cell is not reported."""

from __future__ import annotations

import pytest

from speclab.experiment.spec import CellResult, Profile
from speclab.papers.fill import fill
from speclab.papers.ledger import LedgerLine
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Paper
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import TableResult
from speclab.reproduce.book import of_another_machine
from speclab.views.charts.choose import chart
from speclab.views.tables.html import section_html
from speclab.views.tables.markdown import section_md
from speclib import machine
from speclib.trace.metrics import Stats, total

SMALL = Profile("small", 2_048, 1, 8, 2, 8)


def stats(rounds: int, seconds: float) -> Stats:
    """A request of nine tokens, one of them in the first half second."""
    return Stats(
        requests=1, tokens=9, first_tokens=1, seconds=seconds, ttft=0.5, rounds=rounds
    )


@pytest.fixture
def filled(monkeypatch) -> TableResult:
    """Table 1: plain decoding takes 4 s, all else 1.5; DeepSeek's has overruns."""

    def made_up_results(specs, progress=None):
        tested = Stats(
            drafted=8,
            accepted=6,
            rejected=1,
            draft_runs=8,
            target_runs=4,
            draft_seconds=1.0,
            target_seconds=1.0,
        )
        plain = Stats(target_runs=9, target_seconds=4.0)
        results = {}
        for spec in specs:
            has_overruns = "deepseek-6.7" in spec.latency
            results[spec] = CellResult(
                spec,
                stats=[total([stats(4, 2.0), tested])] * 2,
                baseline=[total([stats(9, 4.5), plain])] * 2,
                gamma=7,
                c=3.0,
                machine="xeon-2c-ab12cd",
                created="2026-01-02 03:04",
                facts={
                    "searched": {"5": 1.0, "7": 2.0},
                    "over_virtual": 1.0123,
                    "overruns": 0.011 if has_overruns else 0.01,
                },
            )
        return results

    monkeypatch.setattr("speclab.papers.fill.run_all", made_up_results)
    return fill(load_paper("pearl").table("table-1"), SMALL, kinds=("emulated",))


@pytest.fixture
def pearl() -> Paper:
    return load_paper("pearl")


def emulated_row(filled: TableResult, column: str) -> LedgerLine:
    """Speculative decoding's emulated row in a column."""
    for row in filled.lines:
        cell = (row.kind, row.row, row.column)
        if cell == ("emulated", "Speculative Decoding", column):
            return row
    raise AssertionError(f"no such row in {column}")


def test_an_emulated_row_names_latency_machine_window_ratio_and_overruns(filled):
    row = emulated_row(filled, "Llama2 7&70B")
    assert row.setup == "pearl/llama2-7-70@xeon-2c-ab12cd"
    assert of_another_machine(row)
    ours = row._replace(setup=f"pearl/llama2-7-70@{machine.name()}")
    assert not of_another_machine(ours)

    assert row.value == pytest.approx((8 / 1.5) / (8 / 4.0))
    assert row.n == 2
    for words in (
        "gamma 7, best of 5..7 on the virtual clock",
        "virtual clock x1.012",
        "overruns 1.0%",
        "alpha 0.9",
    ):
        assert words in row.note
    assert row.source == "emulated 2026-01-02 03:04"


def test_more_than_one_percent_of_overruns_leaves_the_cell_empty_with_the_reason(
    filled,
):
    row = emulated_row(filled, "DeepSeek 6.7&33B")
    assert row.value is row.low is row.high is None
    assert row.note.startswith("not reported: ")
    assert "overruns 1.1%" in row.note
    assert (row.row, row.column) not in filled.values["emulated"]
    assert section_md(filled).count("| not reported |") == 4
    assert section_html(filled).count(">not reported<") == 4


def test_emulated_claims_are_judged_beside_the_printed_ones(filled):
    verdicts = {(claim.claim, claim.kind): claim.holds for claim in filled.claims}
    assert verdicts["below-c", "emulated"] == "yes"
    assert verdicts["below-c", "paper"] == "yes"
    assert ("is-table-6-llama2", "emulated") not in verdicts
    assert "error emulated" in filled.frame()["Llama2 7&70B"]


def test_emulated_numbers_have_a_panel_in_charts(filled):
    panels = [panel.text for panel in chart(filled).layout.annotations]
    assert panels == ["paper", "emulated"]


def test_an_emulated_cell_is_as_long_as_the_profile_says_and_calibrates_as_the_virtual(
    pearl,
):
    table = pearl.table("table-1")
    emulated = cells_to_run(table, SMALL, ("emulated",))
    virtual = cells_to_run(table, SMALL, ("virtual",))
    assert {(cell.spec.requests, cell.spec.tokens) for cell in emulated} == {(2, 8)}
    assert [cell.calibrates for cell in emulated] == [
        cell.calibrates for cell in virtual
    ]
