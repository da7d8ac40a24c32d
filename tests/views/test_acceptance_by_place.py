"""Acceptance place by place, drawn: each dot is a rate that was counted."""

from __future__ import annotations

import pytest

import speclab
import speclib
from speclib.errors import BadValue


def test_each_line_has_the_rates_of_its_runs_and_none_where_nothing_was_tested():
    rates = [0.9, 0.6, 0.3]
    runs = []
    for seed in range(4):
        run = speclib.simulate("speculative", gamma=3, alpha=rates, seed=seed)
        runs.append(run)
    never = speclib.simulate("speculative", gamma=3, alpha=0.0, tokens=4)
    counts = speclab.acceptance(runs)
    view = speclab.acceptance_by_place(
        {"given": runs, "counted": counts, "never": never}
    )
    assert view.lines["given"] == view.lines["counted"]
    assert view.lines["given"] == dict(enumerate(counts.conditional, 1))
    assert view.lines["never"] == {1: 0.0}
    assert "place in the window" in view.picture()


def test_a_run_without_windows_is_named():
    plain = speclib.simulate("autoregressive")
    with pytest.raises(BadValue, match="no draft of a line was tested"):
        speclab.acceptance_by_place({"plain": plain})
