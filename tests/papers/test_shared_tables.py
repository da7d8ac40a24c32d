"""PEARL's tables on shared devices: what is one row over another, and what is moved."""

from __future__ import annotations

import pytest

import speclib
from speclab.experiment.cells.moved_cache import measure_transport
from speclab.experiment.run_cells import example_trace
from speclab.experiment.spec import QUICK
from speclab.papers.derived_rows import add_quotients
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclib.errors import BadValue
from speclib.trace.metrics import stats
from speclib.trace.rounds import cut_at

LANGUAGE = "thai"


@pytest.mark.parametrize(
    "pair, t_draft, t_target",
    [("llama 2", 1 / 49.94, 1 / 9.22), ("llama 3.1", 1 / 44.37, 1 / 9.00)],
)
def test_what_is_left_is_what_moving_the_cache_leaves(
    pearl_results, pair, t_draft, t_target
):
    """Five drafts and a target of three stages never meet (Appendix G).

    So a round lasts as long as the longer of both sides. Moving the cache, 1.3 ms each
    way (Table 16), lengthens the draft's, which Llama 3.1 feels and Llama 2 does not.
    The first 128 tokens: the last rounds of a text draft less, and a longer cache takes
    longer to move.
    """
    apart = max(t_target, 5 * t_draft)
    shared = max(t_target, 5 * t_draft + 2 * 0.0013)
    results = pearl_results["table-18"].cell_results
    speeds = {}
    for where in ("shared", "apart"):
        result = results[f"{pair}, {where}", LANGUAGE, "virtual"]
        trace = example_trace(result, tokens=256)
        speeds[where] = stats(cut_at(trace, 128)).decode_speed
    left = speeds["shared"] / speeds["apart"]
    assert left == pytest.approx(apart / shared, rel=1e-4)


def test_a_quotient_row_has_the_mean_and_a_note_of_its_rows(pearl_results):
    result = pearl_results["table-18"]
    virtual = result.values["virtual"]
    speeds = [
        virtual[f"llama 3.1, {where}", "average"] for where in ("shared", "apart")
    ]
    assert virtual["llama 3.1 (RC)", "average"] == pytest.approx(speeds[0] / speeds[1])
    notes = {
        row.note
        for row in result.lines
        if row.row == "llama 3.1 (RC)" and row.kind == "virtual"
    }
    assert notes == {"llama 3.1, shared over llama 3.1, apart"}


def test_what_a_quotient_is_made_of_leaves_it_out_with_it():
    table = load_paper("pearl").table("table-8")
    row, over = "Llama 2 7b&70b (RC)", "Llama 2 7b&70b"
    quotient = "performance retain (Llama 2 7b&70b)"
    result = TableResult(table, QUICK)
    for label, value in ((row, 9.0), (over, 10.0)):
        for column in ("Writing", "Math", "Stem"):
            result.add(
                row=label,
                column=column,
                metric="decode_speed",
                unit="tok/s",
                kind="measured",
                setup="",
                value=value,
            )
    result.left_out.add((over, "Math", "measured"))
    result.disturbed.add((row, "Stem", "measured"))
    add_quotients(result)

    assert result.values["measured"][quotient, "Writing"] == pytest.approx(90)  # %
    assert (quotient, "Math") not in result.values["measured"]
    assert (quotient, "Math", "measured") in result.left_out
    assert (quotient, "Stem", "measured") in result.disturbed


@pytest.mark.slow
def test_a_longer_cache_takes_longer_to_move():
    pytest.importorskip("torch")
    pair = speclib.load_pair("embedded/llama3.1-8b-70b-shared")
    seconds = measure_transport(pair, (16, 1024), repeats=5)
    assert [len(times) for times in seconds.values()] == [5, 5]
    assert 0 < min(seconds[16]) < min(seconds[1024])


def test_a_pair_without_replicas_has_nothing_to_move():
    pair = speclib.load_pair("embedded/llama-7b-70b")
    with pytest.raises(BadValue, match="has no replicas to move a cache between"):
        measure_transport(pair, (16,), repeats=1)
