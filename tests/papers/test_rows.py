"""Rows of the ledger: how a number is called, where it comes from, what failed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.tables import (
    SMALL,
    fill_with,
    lines_of_kind,
    two_measured_requests,
    verdicts_of_kind,
)

from speclab.experiment.spec import CellResult, Spec
from speclab.papers.fill import fill
from speclab.papers.ledger import KEY, LedgerLine
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Table
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import TableResult
from speclab.papers.table_rows import add_lines_and_verdicts
from speclab.papers.two_phase import NO_PEERS
from speclib.trace.metrics import Stats

CellKey = tuple[str, str, str]  # row, column, kind


@pytest.mark.slow
def test_every_kind_has_its_own_rows_and_no_key_twice(pearl_results):
    rows = []
    for result in pearl_results.values():
        rows += result.lines
    assert len({row[:KEY] for row in rows}) == len(rows)
    assert {row.kind for row in rows} == {"paper", "virtual"}
    for row in rows:
        if row.kind == "paper":
            assert row.setup == ""
            assert row.low is None
        else:
            assert row.setup

    for row in lines_of_kind(pearl_results["table-4"], "virtual"):
        assert row.low <= row.value <= row.high
        assert row.n == (8 if "Llama 2" in row.column else 2)


def test_lost_and_absent_cells_are_rows_without_a_value(pearl):
    table_1 = fill(pearl.table("table-1"), SMALL, kinds=())
    absent = [row for row in table_1.lines if row.note == "not printed"]
    assert {(row.row, row.column) for row in absent} == {
        ("Ouroboros", "Llama3.1 8&70B"),
        ("Lookahead Decoding", "Llama3.1 8&70B"),
    }
    figure_2a = fill(pearl.table("figure-2a"), SMALL, kinds=())
    lost = [row for row in figure_2a.lines if row.note == "lost"]
    assert [(row.row, row.value) for row in lost] == [("bars", None)]


def test_the_frame_has_rows_as_printed_and_a_column_per_kind(pearl_results):
    frame = pearl_results["table-4"].frame()
    assert list(frame.index) == [
        "PEARL w/o pre-verify",
        "PEARL w/o post-verify",
        "PEARL",
    ]
    assert list(frame["CodeLlama 7B&34B"].columns) == ["paper", "virtual", "error"]
    cell = frame.loc["PEARL", "CodeLlama 7B&34B"]
    assert cell["paper"] == 2.35
    assert cell["error"] == pytest.approx(cell["virtual"] / 2.35 - 1)


def test_a_failed_cell_is_an_empty_row_and_an_error_with_its_name(pearl):
    def fail(spec: Spec) -> CellResult:
        raise RuntimeError("out of memory")

    result = fill_with(fail, pearl.table("table-5"), "virtual")

    assert len(result.errors) == 15
    assert all(name.startswith("table-5, ") for name in result.errors)
    failed_rows = lines_of_kind(result, "virtual")
    assert {row.value for row in failed_rows} == {None}
    assert "out of memory" in failed_rows[0].note
    assert result.values["paper"]
    assert "virtual" not in result.values


# -- measured rows ---------------------------------------------------------------------
def measured_result(spec: Spec) -> CellResult:
    """Two requests: 8 tokens after the first commit in 1.5 s, plain decoding in 4."""
    counts = Stats(1, 9, 1, 2.0, 0.5, 4, 8, 6, 1, 8, 4, 1.0, 1.0)
    plain_counts = Stats(1, 9, 1, 4.5, 0.5, 9, 0, 0, 0, 0, 9, 0.0, 4.0)
    return two_measured_requests(
        spec, counts, plain_counts, differs=[None, 3], gap=[None, 0.0039]
    )


def test_measured_rows_name_pair_machine_dtype_and_threads(pearl):
    result = fill_with(measured_result, pearl.table("table-1"), "measured")

    by_metric = {}
    for row in lines_of_kind(result, "measured"):
        if (row.row, row.column) == ("PEARL (ours)", "CodeLlama 7&34B"):
            by_metric[row.metric] = row
    row = by_metric["speedup"]
    assert row.setup == "embedded/codellama-7b-34b@xeon-2c-ab12cd/float32/1"
    assert row.value == pytest.approx((8 / 1.5) / (8 / 4.0))
    assert row.n == 2
    assert "dilated" in row.note
    assert (
        "output of plain decoding: 1 of 2; first divergence after 3 tokens, "
        "top-2 logit gap 0.0039;"
    ) in row.note
    with_prefill = by_metric["speedup_e2e"]
    assert with_prefill.value == pytest.approx((9 / 2.0) / (9 / 4.5))

    below_c = verdicts_of_kind(result, "measured")["below-c"]
    assert below_c.holds == "yes"  # against the c that was measured, 2.9
    assert "error measured" in result.frame()["CodeLlama 7&34B"]


# -- means over columns ----------------------------------------------------------------
def uneven_result(spec: Spec) -> CellResult:
    """As ``measured_result``, but the second request takes a third longer."""
    result = measured_result(spec)
    result.stats[1] = replace(result.stats[1], seconds=2.5)
    return result


def filled_table_1(table: Table, **sets: set[CellKey]) -> TableResult:
    """DuoDecoding's Table 1 with the same two requests in all of its columns.

    What is left out is not run.
    """
    result = TableResult(table, SMALL, **sets)
    cells = []
    for cell in cells_to_run(table, SMALL, ("measured",)):
        if (cell.row, cell.column, cell.kind) not in result.left_out:
            cells.append(cell)
    results = {cell.spec: uneven_result(cell.spec) for cell in cells}
    add_lines_and_verdicts(result, cells, results, {}, ("measured",), NO_PEERS)
    return result


@pytest.fixture(scope="module")
def duo_table_1() -> Table:
    return load_paper("duodecoding").table("table-1")


def measured_rows(result: TableResult, row: str) -> dict[str, LedgerLine]:
    """The measured rows of the table's metric, by column."""
    rows = {}
    for ledger_line in lines_of_kind(result, "measured"):
        if ledger_line.row == row and ledger_line.metric == "speedup":
            rows[ledger_line.column] = ledger_line
    return rows


ROW = "Llama / DuoDec"
FIRST, MEAN = "MT-Bench / speedup", "Avg. / speedup"


def test_the_mean_of_equal_columns_has_the_interval_of_each(duo_table_1):
    rows = measured_rows(filled_table_1(duo_table_1), ROW)
    mean, first = rows.pop(MEAN), rows[FIRST]
    assert len(rows) > 2
    # Two requests of 8 tokens after the first: 16 in 1.5 + 2 s over 16 in 4 + 4 s.
    assert mean.value == pytest.approx(8 / 3.5)
    assert mean.low < mean.value < mean.high
    assert (mean.low, mean.high) == pytest.approx((first.low, first.high))
    assert mean.n == first.n == 2
    assert mean.note == f"mean of the other {len(rows)} columns"


def test_there_is_no_mean_of_a_row_with_a_left_out_cell(duo_table_1):
    left_out = {(ROW, FIRST, "measured")}
    result = filled_table_1(duo_table_1, left_out=left_out)
    assert MEAN not in measured_rows(result, ROW)
    assert (ROW, MEAN, "measured") in result.left_out
    open_notes = [c.note for c in result.claims if f"{ROW} / {FIRST}" in c.note]
    assert open_notes
    for claim in result.claims:
        if f"{ROW} / {MEAN}" in claim.note:
            assert claim.holds == "open"
            assert claim.note.startswith("not run yet: ")


def test_a_disturbed_cell_says_so_in_the_ledger_and_so_does_its_mean(duo_table_1):
    disturbed = {(ROW, FIRST, "measured")}
    result = filled_table_1(duo_table_1, disturbed=disturbed)
    rows = measured_rows(result, ROW)
    words = "disturbed: other programs kept the machine busy"
    disturbed_columns = {c for c, row in rows.items() if words in row.note}
    assert disturbed_columns == {FIRST, MEAN}
    holds = {c.holds for c in result.claims if f"{ROW} / {FIRST}" in c.note}
    assert holds == {"n/a"}


def test_a_table_of_which_all_cells_are_left_out_has_open_verdicts(duo_table_1):
    left_out = set()
    for cell in cells_to_run(duo_table_1, SMALL, ("measured",)):
        left_out.add((cell.row, cell.column, "measured"))
    result = filled_table_1(duo_table_1, left_out=left_out)
    assert "measured" not in result.values
    verdicts = [claim for claim in result.claims if claim.kind == "measured"]
    assert verdicts
    judged = {claim.holds for claim in verdicts}
    assert judged <= {"open", "n/a"}
    assert "open" in judged
