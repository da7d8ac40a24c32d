"""Sliders above a timeline: runs simulated anew, or results that exist already."""

from __future__ import annotations

import asyncio
import base64

import pytest
from helpers.patience import HANG
from helpers.toy_runs import toy_run, toy_runs

from speclab import explorer
from speclab.views.widgets.timeline_explorer import expected_speedup
from speclib import SpeclibError, compare, simulate
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import speedup


def test_an_explorer_of_stored_runs_shows_the_one_that_its_slider_names():
    results = {}
    for gamma in (2, 3):
        results[gamma] = [
            simulate("autoregressive", tokens=8),
            simulate("speculative", gamma=gamma, tokens=8),
        ]
    view = explorer(results, {"gamma": 3})
    assert view.text().startswith("explorer at gamma = 3\n")
    assert "Speculative decoding γ = 3" in view.figures.value

    view.controls["gamma"].value = 2
    assert "Speculative decoding γ = 2" in view.figures.value


def test_stored_runs_without_a_value_to_show_first_ask_for_it():
    with pytest.raises(SpeclibError, match="give {what they differ in"):
        explorer({2: [simulate("autoregressive", tokens=8)]})


@pytest.mark.thorough
@pytest.mark.parametrize("alpha, gamma, c", [(0.8, 3, 3), (0.9, 5, 5), (0.7, 3, 5)])
def test_expected_speedups_are_what_4000_tokens_show(alpha, gamma, c):
    long = {"limit": 4000, "alpha": alpha, "c": float(c)}
    plain = timeline_run(toy_run("autoregressive", **long))
    for method in ("speculative", "pearl"):
        run = timeline_run(toy_run(method, gamma=gamma, **long))
        expected = expected_speedup(method, gamma, float(c), alpha)
        assert speedup(run, [plain, run]) == pytest.approx(expected, rel=0.04)


def test_a_network_makes_a_target_pass_longer_by_a_round_trip():
    """Of 0.1 s and two messages of 0.02 s: 0.14 s. All drafts are right."""
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


def test_the_price_beside_the_sliders_is_device_time_over_plain_decodings():
    """alpha = 1, gamma = c = 5: six tokens for five drafts of 1/5 and a pass: 2 / 6."""
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


def test_a_control_that_cannot_be_read_is_named_with_the_next_step():
    with pytest.raises(SpeclibError, match="control 'c'"):
        explorer(lambda c: toy_runs(), {"c": (1, 2)})


def test_simulate_can_be_explored_with_the_controls_that_stand_there_by_default():
    """They have a draft length, which plain decoding, the baseline, has not."""
    view = explorer(simulate)
    assert [run.trace.meta["method"] for run in view.simulated()] == [
        "autoregressive",
        "pearl",
    ]
    view.controls["gamma"].value = 4
    assert "γ = 4" in view.figures.value


def test_a_function_that_demands_a_draft_length_gets_it_for_plain_decoding_too():
    asked_for = []

    def run(method, gamma, c):
        asked_for.append((method, gamma, c))
        return toy_run(method, gamma=gamma, c=c)

    controls = {"method": ("pearl",), "gamma": (1, 9, 1, 3), "c": (1, 9, 1, 3)}
    explorer(run, controls)
    assert asked_for == [("pearl", 3, 3), ("autoregressive", 3, 3)]


def test_a_single_run_that_is_stored_is_shown_alone():
    runs = {gamma: simulate("speculative", gamma=gamma, tokens=8) for gamma in (2, 3)}
    view = explorer(runs, {"gamma": 3})
    assert len(view.timeline.runs) == 1


# -- one draw and many -----------------------------------------------------------------
SLIDERS = {
    "gamma": (1, 9, 1, 5),
    "alpha": (0.0, 1.0, 0.1, 0.8),
    "method": ("pearl", "speculative"),
    "tokens": (6, 60, 6, 24),
}


def test_a_button_draws_anew_and_a_slider_keeps_the_draw():
    view = explorer(compare, SLIDERS)
    first = view.timeline.svg
    view.draw_button.click()
    second = view.timeline.svg
    assert second != first
    view.controls["gamma"].value = 6
    view.controls["gamma"].value = 5
    assert view.timeline.svg == second


def test_the_range_of_many_draws_is_that_of_separate_runs():
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


def test_in_a_notebook_many_draws_follow_by_themselves():
    async def open_notebook():
        view = explorer(compare, SLIDERS)
        assert view.rows()[2].draws == "–"
        async with asyncio.timeout(HANG):
            while "mean" not in view.figures.value:
                await asyncio.sleep(0)  # lets the draws go on
        return view

    view = asyncio.run(open_notebook())
    view.controls["gamma"].value = 2
    assert view.rows()[2].draws == "–"  # they were of another draft length


def test_what_has_no_draws_has_no_button():
    results = {2: [simulate("autoregressive", tokens=8)]}
    assert not explorer(results, {"gamma": 2}).draws_anew
    assert not explorer(toy_run).draws_anew
    assert explorer(simulate).draws_anew


# -- controls --------------------------------------------------------------------------
def test_two_controls_are_shown_and_the_others_fold_out():
    bar = explorer(compare, SLIDERS).children[0]
    first_row, (others,) = bar.children[0], bar.children[1].children
    assert [control.description for control in first_row.children] == [
        "γ (draft length)",
        "α (acceptance)",
        "Draw anew",
        "More",
    ]
    assert len(others.children) == 2
    assert others.layout.display == "none"
    first_row.children[-1].value = True
    assert others.layout.display is None


def test_a_dropdown_shows_its_first_option_also_where_that_stands_for_none():
    options = {"both kept": None, "pre-verify": "pre-verify"}
    view = explorer(compare, {**SLIDERS, "without": options})
    assert view.controls["without"].index == 0
    assert view.controls["without"].value is None
