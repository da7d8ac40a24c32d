"""An explorer of results that exist already."""

from __future__ import annotations

import pytest

from speclib import SpeclibError, explorer, simulate


def test_an_explorer_of_stored_runs_shows_the_one_that_its_slider_names():
    results = {}
    for gamma in (2, 3):
        results[gamma] = [
            simulate("autoregressive", tokens=8),
            simulate("speculative", gamma=gamma, tokens=8),
        ]
    view = explorer(results, {"gamma": 3})
    assert view.text().startswith("explorer at gamma = 3\n")
    assert "SD γ = 3" in view.figures.value

    view.controls["gamma"].value = 2
    assert "SD γ = 2" in view.figures.value


def test_stored_runs_without_a_value_to_show_first_ask_for_it():
    with pytest.raises(SpeclibError, match="give {what they differ in"):
        explorer({2: [simulate("autoregressive", tokens=8)]})
