"""Sliders above a timeline: every step simulates the runs again."""

from __future__ import annotations

import asyncio
import base64
from functools import partial

import pytest
from helpers.patience import HANG
from helpers.toy_runs import toy_run

from speclab import explorer
from speclab.views.widgets.timeline_explorer import expected_speedup
from speclib import SpeclibError, compare, simulate


def test_a_network_makes_a_target_pass_longer_by_a_round_trip():
    """A pass of 0.1 s and two messages of 0.02 s take 0.14 s. All drafts are right."""
    asked = {"gamma": 5, "c": 5.0, "alpha": 1.0, "network": 0.02}
    a_token = 0.14
    of_speculative = 6 * a_token / (5 * 0.02 + 0.14)
    assert expected_speedup("speculative", **asked) == pytest.approx(of_speculative)
    assert expected_speedup("pearl", **asked) == pytest.approx(5.0)
    assert expected_speedup("pearl", **asked | {"gamma": 7}) == pytest.approx(7.0)
    twice_as_slow = asked | {"target": 0.2, "network": 0.04}
    assert expected_speedup("pearl", **twice_as_slow) == pytest.approx(5.0)


def test_a_slider_moves_the_timeline_in_place():
    view = explorer(toy_run)
    widget, svg, figures = view.timeline, view.timeline.svg, view.figures.value
    for c in (4.0, 5.0, 6.0):
        view.controls["c"].value = c
    assert view.timeline is widget
    assert widget.svg != svg
    assert view.figures.value != figures

    data, _ = view._repr_mimebundle_()
    state = "explorer at method = pearl, gamma = 3, c = 6.0"
    assert data["text/plain"].startswith(state)
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"


def test_the_cost_next_to_the_sliders_is_device_time_over_plain_decodings():
    """With alpha = 1, gamma = c = 5, six tokens take a pass and five drafts of 1/5."""
    view = explorer(
        compare,
        {
            "method": ("speculative",),
            "gamma": (1, 9, 1, 5),
            "c": (1, 9, 1, 5),
            "alpha": (0.0, 1.0, 0.1, 1.0),
            "tokens": (6, 60, 6, 24),
        },
    )
    assert [row.device_time for row in view.rows()] == ["1.00×", "0.33×"]
    assert [row.over_sd for row in view.rows()] == ["0.33×", "1.00×"]


def test_simulate_can_be_explored_with_the_default_controls():
    """They have a draft length, which plain decoding, the baseline, does not."""
    view = explorer(simulate)
    assert [run.trace.meta["method"] for run in view.simulated()] == [
        "autoregressive",
        "pearl",
    ]
    view.controls["gamma"].value = 4
    assert "γ = 4" in view.figures.value


# -- one seed and many -----------------------------------------------------------------
SLIDERS = {
    "gamma": (1, 9, 1, 5),
    "alpha": (0.0, 1.0, 0.1, 0.8),
    "method": ("pearl", "speculative"),
    "tokens": (6, 60, 6, 24),
}


def test_a_button_changes_the_seed_and_a_slider_keeps_it():
    view = explorer(compare, SLIDERS)
    first = view.timeline.svg
    view.draw_button.click()
    second = view.timeline.svg
    assert second != first
    view.controls["gamma"].value = 6
    view.controls["gamma"].value = 5
    assert view.timeline.svg == second


def test_the_range_of_many_seeds_equals_that_of_separate_runs():
    view = explorer(compare, SLIDERS)
    view.draw_many()
    speedups = []
    for seed in range(60):
        plain, _, pearl = compare("pearl", gamma=5, alpha=0.8, tokens=24, seed=seed)
        speedups.append(plain.stats.seconds / pearl.stats.seconds)
    mean = sum(speedups) / len(speedups)
    wanted = f"{min(speedups):.2f} to {max(speedups):.2f}×, mean {mean:.2f}×"
    assert view.rows()[2].draws == wanted
    assert wanted in view.figures.value


def test_in_a_notebook_many_seeds_follow_automatically():
    async def open_notebook():
        view = explorer(compare, SLIDERS)
        assert view.rows()[2].draws == "–"
        async with asyncio.timeout(HANG):
            while "mean" not in view.figures.value:
                await asyncio.sleep(0)  # lets the other seeds run
        return view

    view = asyncio.run(open_notebook())
    view.controls["gamma"].value = 2
    assert view.rows()[2].draws == "–"  # those had another draft length


def race(**options):
    """As in lesson 00; theory also gets the arguments fixed by a partial."""
    simulated = partial(compare, "speculative", gamma=4, c=5.0, tokens=20)
    sliders = {"alpha": (0.0, 1.0, 0.05, 0.8)}
    return explorer(simulated, sliders, columns=("as_drawn", "expected"), **options)


def test_the_expected_speed_is_shown_at_every_acceptance_rate():
    view = race()
    for alpha, expected in ((0.0, 0.56), (0.45, 0.99), (0.5, 1.08), (1.0, 2.78)):
        view.controls["alpha"].value = alpha
        assert view.rows()[1].expected == f"{expected:.2f}×"
        assert f"{expected:.2f}×" in view.figures.value


def test_a_typical_seed_is_close_to_the_expectation_even_if_the_first_is_not():
    typical = race(typical=True)
    first = race()
    assert typical.seed != first.seed
    distances = {}
    for view in (typical, first):
        apart = []
        for alpha in (0.2, 0.4, 0.5, 0.6, 0.8, 0.9):
            view.controls["alpha"].value = alpha
            row = view.rows()[1]
            drawn, expected = (
                float(figure.rstrip("×")) for figure in (row.as_drawn, row.expected)
            )
            apart.append(abs(drawn - expected) / expected)
        distances[view] = max(apart)
    assert distances[typical] < 0.1 < distances[first]


def test_a_value_in_the_text_moves_the_sliders():
    """A <button value="alpha=1, without=pre-verify"> in the text does so."""
    options = {"both kept": None, "pre-verify": "pre-verify"}
    view = explorer(compare, {**SLIDERS, "without": options})
    assert view.outside.settable == [*SLIDERS, "without"]
    before = view.timeline.svg
    values = {"alpha": "1", "gamma": "7", "without": "pre-verify"}
    view.outside.asked_values = {"count": 1, "values": values}
    assert view.values["alpha"] == 1.0
    assert view.values["gamma"] == 7
    assert view.values["without"] == "pre-verify"
    assert view.timeline.svg != before
    view.set_values(without="both kept")
    assert view.values["without"] is None
    with pytest.raises(SpeclibError, match="no control 'delta'"):
        view.set_values(delta=1)
    with pytest.raises(SpeclibError, match="no without 'all'"):
        view.set_values(without="all")
