"""PEARL's figures and tables on the virtual clock, compared with arithmetic."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from helpers.tables import committed, lines_of, verdicts_of

from speclab.papers.pearl_figures import best_lengths
from speclab.papers.table_cells import cells_to_run
from speclab.traces.cut_traces import cut_at
from speclab.virtual.cells import example_trace
from speclib.trace.metrics import stats


# -- printed steps ---------------------------------------------------------------------
@pytest.mark.parametrize("item", ["table-9", "figure-3"])
def test_the_engine_repeats_the_printed_steps(pearl, item):
    result, table = committed("pearl")[item], pearl.table(item)
    replayed = result.figure
    assert replayed.committed == tuple(step.committed for step in table.steps)
    assert replayed.accepted == tuple(len(step.accepted) for step in table.steps)
    assert sum(replayed.committed, ()) == table.output
    assert result.values["virtual"] == result.values["paper"]
    if item == "figure-3":
        assert replayed.starts == (0, 3, 6, 9)
        assert replayed.trace.makespan == pytest.approx(12)


# -- phases, and best draft lengths ----------------------------------------------------
def test_figure_2a_is_six_drafts_over_one_verification():
    values = committed("pearl")["figure-2a"].values["virtual"]
    pair = "CodeLlama 7B & 34B"
    phases = values["six drafts over one verification", pair]
    assert phases == pytest.approx(6 * 18.58 / 49.34)
    speeds = values["speed of the draft over the target", pair]
    assert speeds == pytest.approx(49.34 / 18.58)


def test_best_draft_lengths_by_hand():
    """Tokens 1 .. 8; the third draft is wrong; commits of 1, 2, 2 and 3 tokens."""
    agrees = [True, True, False, True, True, True, True, True]
    commits = [SimpleNamespace(tokens=(7,) * n) for n in (1, 2, 2, 3)]
    lengths = best_lengths(agrees, commits, 4)
    assert lengths.values == (2, 1, 5, 3)
    assert lengths.gamma == 4
    assert lengths.complete == 2  # the last two end with the output


# -- items that are cells --------------------------------------------------------------
def test_theorem_2_holds_without_its_plus_one():
    """A run of drafts with its replacement has 1 / (1 - alpha) tokens on average."""
    result = committed("pearl")["theorem-2"]
    values, column = result.values["virtual"], "E(accepted tokens)"
    assert values["0.0", column] == 1
    assert values["0.5", column] == pytest.approx(2, rel=0.03)
    assert values["0.75", column] == pytest.approx(4, rel=0.05)
    assert verdicts_of(result, "virtual")["plus-one-at-0.0"].holds == "no"


def test_run_counts_match_164_prompts_of_1024_tokens():
    """Without any scaling, the counts are those of Table 11."""
    result = committed("pearl")["table-11"]
    for row in ("Deepseek 6.7B&33B", "Codellama 7B&70B"):
        assert abs(result.error(row, "Target Model (SD)")) < 0.05
    for line in lines_of(result, "virtual", metric="runs"):
        assert f"scaled to {164 * 1024} tokens" in line.note
    for line in lines_of(committed("pearl")["table-7"], "virtual"):
        assert "scaled to" not in line.note


@pytest.mark.parametrize(
    "pair, t_draft, t_target",
    [("llama 2", 1 / 49.94, 1 / 9.22), ("llama 3.1", 1 / 44.37, 1 / 9.00)],
)
def test_table_18_is_the_speed_left_after_moving_the_cache(
    pearl, pair, t_draft, t_target
):
    """Five drafts and a target of three stages never meet (Appendix G).

    So a round lasts as long as the slower side. Moving the cache takes 1.3 ms each way
    (Table 16) and lengthens the draft's side, which slows Llama 3.1 but not Llama 2.
    Only the first 128 tokens count: the last rounds of a text draft less, and a longer
    cache takes longer to move.
    """
    apart = max(t_target, 5 * t_draft)
    shared = max(t_target, 5 * t_draft + 2 * 0.0013)
    cells = {c[:2]: c.spec for c in cells_to_run(pearl.table("table-18"), ["virtual"])}
    speeds = {}
    for where in ("shared", "apart"):
        trace = example_trace(cells[f"{pair}, {where}", "thai"], tokens=256)
        speeds[where] = stats(cut_at(trace, 128)).decode_speed
    left = speeds["shared"] / speeds["apart"]
    assert left == pytest.approx(apart / shared, rel=1e-4)

    values = committed("pearl")["table-18"].values["virtual"]
    average = {where: values[f"{pair}, {where}", "average"] for where in speeds}
    quotient = average["shared"] / average["apart"]
    assert values[f"{pair} (RC)", "average"] == pytest.approx(quotient)
