"""Curves that follow a slider, and a trail of clicks."""

from __future__ import annotations

import ipywidgets
import pandas as pd
import pytest
from helpers.svg import elements, number, texts

from speclab import moving_curves, trail
from speclib import SpeclibError

CHARTS = {2: {"a": {"x": 1.0, "y": 2.0}}, 8: {"a": {"x": 2.0, "y": 8.0}}}


def heights(view) -> list[float]:
    return [number(dot, "cy") for dot in elements(view.picture(), "circle")]


# -- curves ----------------------------------------------------------------------------
def test_curves_follow_the_slider():
    view = moving_curves(CHARTS, {"c": 8}, "speed", low=0)
    at_8 = heights(view)
    assert view.text().startswith("curves at c = 8\nspeed\n  a: x: 2, y: 8")
    view.controls["c"].value = 2
    assert heights(view) != at_8
    assert view.text().startswith("curves at c = 2\nspeed\n  a: x: 1, y: 2")
    assert view.image.value == view.picture()


def test_a_first_value_without_a_chart_names_those_that_there_are():
    with pytest.raises(SpeclibError, match="c is 3: give one of 2, 8"):
        moving_curves(CHARTS, {"c": 3}, "speed")
    with pytest.raises(SpeclibError, match="the slider's name"):
        moving_curves(CHARTS, {}, "speed")


# -- a trail ---------------------------------------------------------------------------
def test_a_trail_shows_a_table_a_text_and_a_view_step_by_step():
    view = ipywidgets.Label("a view of its own")
    steps = {"table": pd.DataFrame({"k": [7]}), "text": "a < b", "view": view}
    shown = trail(steps)
    assert "7" in shown.content.children[0].value
    shown.next_button.click()
    assert "a &lt; b" in shown.content.children[0].value
    shown.next_button.click()
    assert shown.content.children == (view,)
    shown.next_button.click()
    assert shown.buttons.value == "table"


def test_a_trail_is_stored_as_a_picture_and_in_words():
    data, _ = trail({"1. the claim": "yes", "2. the cell": "3.4"})._repr_mimebundle_()
    assert {"text/plain", "image/png"} < data.keys()
    assert "1. the claim\nyes" in data["text/plain"]
    table = pd.DataFrame({"kind": ["paper"], "value": [3.29]})
    shown = texts(trail({"the cell": table, "the text": "\na\nb"}).picture())
    assert shown == ["the cell", "1 rows: kind, value", "the text", "a"]


def test_a_trail_of_nothing_is_named():
    with pytest.raises(SpeclibError, match="at least one step"):
        trail({})
