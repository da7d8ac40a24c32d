"""Real models behind a button: nothing runs before a click, and nothing blocks."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from speclab import teach
from speclab.teach.runs_of_lessons import store_runs
from speclib import SpeclibError, compare, decode

PAIR = "embedded/llama-7b-70b"
PROMPT = "Tom has 3 apples."


def test_nothing_runs_before_a_click_and_the_picture_says_so():
    shown = teach.real_run(PROMPT, PAIR)
    assert not shown.runs
    assert shown.timeline is None
    assert "Not run yet" in repr(shown)
    assert "Not run yet" in "".join(ET.fromstring(shown.picture()).itertext())


def test_a_plan_is_made_when_somebody_clicks(own_cache):
    shown = teach.plan_run("toy", prompts=1, max_new_tokens=16)
    assert "Not run yet" in repr(shown)
    shown.button.click()
    shown.wait()
    assert shown.error is None
    fastest = shown.table.index[0]
    assert shown.spoken == f"The fastest here: {fastest}."
    assert fastest in shown.children[-1].value
    assert fastest in repr(shown)


def test_a_plan_of_unknown_names_is_refused_before_anything_runs():
    with pytest.raises(SpeclibError, match="humaneval"):
        teach.plan_run("toy", task="humanevil")
    with pytest.raises(SpeclibError, match="embedded/"):
        teach.plan_run("embedded/lama")


@pytest.mark.slow
def test_a_click_runs_every_method_beside_the_notebook(own_cache):
    shown = teach.real_run(
        PROMPT, PAIR, methods=("autoregressive", "pearl"), max_new_tokens=8
    )
    shown.button.click()  # returns at once
    assert shown.button.description == "Stop"
    shown.wait()

    plain = decode(
        PROMPT,
        pair=PAIR,
        world="virtual",
        method="autoregressive",
        max_new_tokens=8,
    )
    assert [run.tokens for run in shown.runs] == [plain.tokens, plain.tokens]
    assert shown.timeline in shown.children
    assert "All methods wrote the same" in repr(shown)
    assert {run.trace.meta["method"] for run in shown.runs} == {
        "autoregressive",
        "pearl",
    }
    assert shown.button.description == "Run it again"


def test_devices_may_be_emulated_and_the_target_on_several():
    shown = teach.real_run(
        "x", "toy", methods=("dsi",), max_new_tokens=4, world="emulated", servers=2
    )
    shown.button.click()
    shown.wait()
    assert shown.error is None
    assert shown.runs[0].trace.meta["servers"] == 2
    assert {event.clock for event in shown.runs[0].trace.operations} == {"emulated"}


def test_stored_runs_are_what_was_stored_and_are_shown_before_a_click(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("SPECLIB_CLICK", "1")
    made = compare("pearl", prompt="x", pair="toy", world="virtual", max_new_tokens=8)
    store_runs(tmp_path / "of-a-toy.json", made)
    monkeypatch.setattr("speclab.teach.runs_of_lessons.FOLDER", tmp_path)
    stored = teach.stored_runs("of-a-toy")
    for run in made:
        again = stored[run.trace.meta["method"]]
        assert again.trace == run.trace
        assert (again.text, again.tokens) == (run.text, run.tokens)
        assert again.stats == run.stats
    with pytest.raises(SpeclibError, match="of-a-toy"):
        teach.stored_runs("of-a-tie")

    shown = teach.real_run("x", "toy", methods=("pearl",), stored=stored)
    assert shown.runs == [stored["pearl"]]
    assert "These runs were recorded on another machine" in repr(shown)
    assert shown.timeline in shown.children
    shown.button.click()
    shown.wait()
    assert shown.runs[0] != stored["pearl"]


def test_without_its_model_a_button_keeps_what_is_stored(monkeypatch, tmp_path):
    for module in ("data.pairs", "models.checkpoint"):
        monkeypatch.setattr(f"speclib.{module}.FETCHED", tmp_path)
    stored = teach.stored_runs("blue-sky")
    assert stored["speculative"].cost_ratio.value > 1
    shown = teach.real_run("x", "smollm2", methods=("pearl",), stored=stored)
    shown.button.click()
    shown.wait()
    assert "speclib fetch smollm2" in shown.spoken
    assert shown.runs == [stored["pearl"]]


def test_where_nobody_can_click_it_has_run_when_it_is_shown(monkeypatch):
    monkeypatch.setenv("SPECLIB_CLICK", "1")
    shown = teach.real_run("x", "toy", methods=("autoregressive",), max_new_tokens=4)
    assert len(shown.runs) == 1
    forms, _ = shown._repr_mimebundle_()
    assert "image/png" in forms


def test_a_second_click_stops_after_the_method_that_runs():
    shown = teach.real_run("x", "toy", max_new_tokens=8)
    shown.button.click()
    shown.button.click()
    shown.wait()
    assert len(shown.runs) < 3
    assert repr(shown).startswith("Stopped")
    assert shown.button.description == "Run it again"


def test_an_error_is_said_and_where_nobody_can_click_it_is_raised(monkeypatch):
    too_long = dict(methods=("autoregressive",), max_new_tokens=10**6)
    shown = teach.real_run("x", "toy", **too_long)
    shown.button.click()
    shown.wait()
    assert repr(shown).startswith("The run failed. BadValue: ")
    monkeypatch.setenv("SPECLIB_CLICK", "1")
    with pytest.raises(SpeclibError, match="max_new_tokens"):
        teach.real_run("x", "toy", **too_long)
