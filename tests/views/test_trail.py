"""A trail of clicks."""

from __future__ import annotations

import ipywidgets
import pandas as pd
from helpers.svg import texts

from speclab import trail


def test_a_trail_unfolds_a_table_a_text_and_a_view_step_by_step():
    view = ipywidgets.Label("a view of its own")
    steps = {"table": pd.DataFrame({"k": [7]}), "text": "a < b", "view": view}
    shown = trail(steps)
    table, text, last = shown.children
    assert "7" in table.value
    assert "a &lt; b" in text.value
    assert last is view
    assert list(shown.titles) == list(steps)
    assert shown.selected_index == 0


def test_a_trail_is_stored_as_a_picture_and_in_words():
    data, _ = trail({"1. the claim": "yes", "2. the cell": "3.4"})._repr_mimebundle_()
    assert {"text/plain", "image/png"} < data.keys()
    assert "1. the claim\nyes" in data["text/plain"]
    table = pd.DataFrame({"kind": ["paper"], "value": [3.29]})
    shown = texts(trail({"the cell": table, "the text": "\na\nb"}).picture())
    assert shown == ["the cell", "1 rows: kind, value", "the text", "a"]
