"""Tables filled by running cells, and filled again from what earlier runs left."""

from __future__ import annotations

from helpers.tables import SMALL, fill_virtually, lines_of_kind

from speclab.papers.fill import collect_all
from speclab.papers.paper_schema import Paper

ITEM = "table-11"  # eight cells, of speculative decoding and PEARL
VIRTUAL = ("virtual",)


def test_what_earlier_runs_left_is_collected_and_the_rest_is_named(
    pearl: Paper, own_cache, tmp_path
):
    nothing = collect_all(pearl, SMALL, {}, [ITEM], VIRTUAL)[ITEM]
    assert not lines_of_kind(nothing, "virtual")
    assert nothing.left_out

    run = fill_virtually(pearl, tmp_path, SMALL, [ITEM])[ITEM]
    collected = collect_all(pearl, SMALL, {}, [ITEM], VIRTUAL)[ITEM]
    assert len(lines_of_kind(run, "virtual")) >= 8
    assert lines_of_kind(collected, "virtual") == lines_of_kind(run, "virtual")
    assert not collected.left_out


def test_only_counts_of_runs_are_scaled_and_their_notes_say_to_what(pearl_results):
    """Table 11 counts the runs of 164 prompts with 1,024 tokens each."""
    for row in lines_of_kind(pearl_results[ITEM], "virtual"):
        if row.metric == "runs":
            assert f"scaled to {164 * 1024} tokens" in row.note, row
    for row in lines_of_kind(pearl_results["table-7"], "virtual"):
        assert "scaled to" not in row.note, row
