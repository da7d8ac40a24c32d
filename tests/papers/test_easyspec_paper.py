"""EasySpec's paper: committed times against Table 1's passes, and its claims."""

from __future__ import annotations

import pytest
from helpers.tables import committed, lines_of, verdicts_of

from speclab.papers.table_result import TableResult

# Seconds of a pass, Llama-3 on eight GPUs, Table 1.
DRAFT = 1 / 36.76
TARGET = 1 / 13.23
PLAIN = 1 / 8.39
# A pass whose layers share inputs, by arithmetic from MMLU's 1.70 s at a share of 0.82.
FUZZY = (1.70 * (1 + 5 * 0.82) / 100 - DRAFT) / 4

MATH = "Llama-3 / T=0 / MATH"


@pytest.fixture(scope="module")
def results() -> dict[str, TableResult]:
    return committed("easyspec")


@pytest.mark.parametrize(
    "method, share", [("+sd", 0.73), ("+tree", 0.95), ("EasySpec", 0.91)]
)
def test_virtual_times_are_table_1s_passes_and_one_fuzzy_pass(results, method, share):
    """A share a of five drafts passes, so 100 tokens take 100 / (1 + 5a) iterations."""
    drafting = DRAFT + 4 * FUZZY if method == "EasySpec" else 5 * DRAFT
    values = results["table-2"].values["virtual"]
    accepted_share = values[MATH, f"{method} / alpha"]
    assert accepted_share == pytest.approx(share, abs=0.015)
    rounds = 100 / (1 + 5 * accepted_share)
    by_hand = {"d": rounds * drafting, "v": rounds * TARGET}
    by_hand["total"] = by_hand["d"] + by_hand["v"]
    for part, seconds in by_hand.items():
        assert values[MATH, f"{method} / {part}"] == pytest.approx(seconds, rel=0.01)


def test_virtual_times_without_a_draft_are_100_passes(results):
    values = results["table-2"].values["virtual"]
    assert values[MATH, "vanilla / total"] == pytest.approx(100 * PLAIN)
    assert values[MATH, "TP / total"] == pytest.approx(100 * TARGET)


def calibrated_cells(result: TableResult) -> set[tuple[str, str]]:
    """The virtual cells whose printed numbers set the clock or the rate."""
    lines = lines_of(result, "virtual")
    return {(li.row, li.column) for li in lines if li.note.startswith("calibration")}


def test_cells_that_set_the_clock_or_the_rate_say_so(results):
    table_1 = results["table-1"]
    virtual = {(li.row, li.column) for li in lines_of(table_1, "virtual")}
    assert calibrated_cells(table_1) == virtual
    assert len(virtual) == 15

    cells = calibrated_cells(results["table-2"])
    assert {cell for cell in cells if cell[1].endswith(" / d")} == {
        ("Llama-3 / T=0 / MMLU", "EasySpec / d"),
        ("Qwen2 / T=0 / MMLU", "EasySpec / d"),
    }
    rows, methods = results["table-2"].table.row_labels, ("+sd", "+tree", "EasySpec")
    shares = {cell for cell in cells if cell[1].endswith("alpha")}
    assert shares == {(row, f"{method} / alpha") for row in rows for method in methods}


def test_the_clock_reproduces_table_1(results):
    values = results["table-1"].values
    assert values["virtual"] == pytest.approx(values["paper"], rel=1e-6)


def test_gpus_beyond_the_lp_size_are_no_busier_than_the_target(results):
    busy = results["figure-1"].values["virtual"]
    for row in results["figure-1"].table.row_labels:
        assert busy[row, "GPU 1"] == pytest.approx(1)
    assert busy["TP", "GPUs 5-8"] == pytest.approx(1)
    # The last round of a text may draft less.
    of_sd = pytest.approx(TARGET / (5 * DRAFT + TARGET), rel=0.01)
    assert busy["+sd", "GPUs 5-8"] == of_sd
    assert busy["+tree", "GPUs 5-8"] == of_sd
    shared = 4 * FUZZY
    of_easyspec = (TARGET + shared) / (DRAFT + shared + TARGET)
    assert busy["EasySpec", "GPUs 2-4"] == pytest.approx(of_easyspec, rel=0.01)


def test_verdicts_of_the_virtual_clock_on_the_papers_claims(results):
    of_table_2 = verdicts_of(results["table-2"], "virtual")
    each_addition = of_table_2["each-addition-is-faster"]
    assert (each_addition.value, each_addition.holds) == ("19 of 19", "yes")
    assert of_table_2["drafting-takes-less-time"].holds == "yes"
    of_figure_1 = verdicts_of(results["figure-1"], "virtual")
    assert of_figure_1["layer-parallelism-fills-gpus"].holds == "yes"
    for row, column in results["table-4"].values["virtual"]:
        assert "EAGLE" not in row + column
