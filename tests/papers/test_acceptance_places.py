"""Acceptance place by place in a table: the counts of real runs, their intervals."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import speclib
from speclab.experiment.cells.window_places import PlaceCounts, place_counts
from speclab.experiment.engines import places
from speclab.experiment.spec import QUICK
from speclab.papers.acceptance_places import add_acceptance_places
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclib.data.prompts import load


def test_the_counts_are_those_of_the_run():
    pair = speclib.load_pair("ladder/poor")
    text = load("gsm8k", 1)[0].input
    (counts,) = place_counts(pair, [text], gamma=3, tokens=40)
    run = speclib.decode(
        text,
        pair=pair,
        method="speculative",
        gamma=3,
        max_new_tokens=40,
        world="virtual",
    )
    assert sum(counts.accepted) == run.stats.accepted
    assert sum(counts.tested) - sum(counts.accepted) == run.stats.rejected
    assert counts.tested[1] <= counts.accepted[0]


def test_a_cell_is_the_share_of_all_texts_and_differs_with_them(monkeypatch):
    """Two texts: 8 of 10 and 2 of 10 pass at the first place, 5 of 8 at the second."""
    rest = [0] * 6
    by_text = [
        PlaceCounts([10, 8, *rest], [8, 5, *rest]),
        PlaceCounts([10, 0, *rest], [2, 0, *rest]),
    ]
    monkeypatch.setattr(places, "counts_by_text", lambda *_: by_text)
    result = TableResult(load_paper("ssd").table("extra-3"), QUICK)
    add_acceptance_places(result)
    row = "all in one pass"
    first = result.estimate(row, "1", "measured")
    assert first.value == 0.5
    assert np.allclose(sorted({*first.resamples.values}), [0.2, 0.5, 0.8])
    assert result.estimate(row, "2", "measured").value == 5 / 8
    assert result.estimate(row, "3", "measured") is None


def test_a_row_that_fails_is_named_and_leaves_the_others(monkeypatch):
    def count(pair, *_):
        if pair == "embedded/once":
            raise speclib.SpeclibError("no such models here")
        return [PlaceCounts([4] * 8, [2] * 8)] * 3

    monkeypatch.setattr(places, "counts_by_text", count)
    result = TableResult(load_paper("ssd").table("extra-3"), QUICK)
    add_acceptance_places(result)
    assert list(result.errors) == ["extra-3, all in one pass"]
    value = result.estimate("0.64, one after the other", "8", "measured").value
    assert value == 0.5
