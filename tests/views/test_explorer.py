"""Sliders above a timeline: runs simulated anew, or results that exist already."""

from __future__ import annotations

import asyncio
import base64
import re
from functools import partial
from pathlib import Path

import pytest
from helpers.patience import HANG
from helpers.toy_runs import toy_run, toy_runs

from speclab import explorer
from speclab.views.notebook_files import read_notebook
from speclab.views.widgets.figures import speedup_after_first
from speclab.views.widgets.timeline_explorer import expected_speedup
from speclib import SpeclibError, compare, simulate
from speclib.drawing.timeline.run import timeline_run


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
        assert speedup_after_first(run, [plain, run]) == pytest.approx(
            expected, rel=0.04
        )


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


ROOT = Path(__file__).resolve().parents[2]


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


def race(**options):
    """Lesson 00's: what a partial has fixed is known to theory, too."""
    simulated = partial(compare, "speculative", gamma=4, c=5.0, tokens=20)
    sliders = {"alpha": (0.0, 1.0, 0.05, 0.8)}
    return explorer(simulated, sliders, columns=("as_drawn", "expected"), **options)


def test_the_speed_that_is_expected_is_shown_at_every_acceptance_rate():
    view = race()
    for alpha, expected in ((0.0, 0.56), (0.45, 0.99), (0.5, 1.08), (1.0, 2.78)):
        view.controls["alpha"].value = alpha
        assert view.rows()[1].expected == f"{expected:.2f}×"
        assert f"{expected:.2f}×" in view.figures.value


def test_a_typical_draw_is_near_what_is_expected_where_the_first_one_is_not():
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


def test_only_the_chosen_figures_stand_in_the_table():
    table = race().figures.value
    assert table.count("<th") == 3  # the run's name and two figures
    assert "waiting" not in table
    with pytest.raises(SpeclibError, match="no figure 'waits'"):
        explorer(compare, SLIDERS, columns=("waits",))


def test_a_value_in_the_text_moves_the_sliders():
    """As a button <button value="alpha=1, without=pre-verify"> asks for it."""
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


def test_values_in_the_lessons_texts_are_those_of_a_slider_beside_them():
    """Each button names controls that its lesson gives to an explorer."""
    found = 0
    for path in sorted((ROOT / "notebooks" / "source").glob("*.ipynb")):
        source = "".join(cell.source for cell in read_notebook(path).cells)
        for values in re.findall(r'<button disabled value="([^"]+)">', source):
            for pair in values.split(","):
                name, value = pair.strip().split("=")
                assert f'"{name}"' in source, (path.stem, pair)
                assert value
                found += 1
    assert found


def test_a_key_draws_anew_as_often_as_it_was_pressed():
    view = explorer(compare, SLIDERS)
    view.outside.asked_anew = 3
    view.outside.asked_anew = 4
    assert view.seed == 4


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
