"""Tables of values from scripts instead of runs: means over texts, by machine."""

from __future__ import annotations

import pytest
from helpers.tables import value_of

from speclab.papers.fill import Known, fill_all
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import Number
from speclab.papers.scripts import values_to_measure
from speclab.papers.table_result import TableResult
from speclab.runs.rows import Rows
from speclab.runs.values import Value


def filled(paper: str, item: str, values: list[Value]) -> TableResult:
    return fill_all(load_paper(paper), Known(Rows([]), values), [item])[item]


def measured(result: TableResult, row: str, column: str) -> Number | None:
    return result.numbers.get((row, column, "measured"))


def test_a_window_position_has_the_mean_share_over_its_texts():
    row, table = "all in one pass", load_paper("ssd").table("extra-3")
    asked = next(a for a in values_to_measure(table) if a.pair == "embedded/once")
    shares = [0.8, 0.2, 0.5]
    values = [value_of(asked, "place 1", n, share) for n, share in enumerate(shares)]
    values.append(value_of(asked, "place 1", asked.n, 9.0))  # a text too many
    result = filled("ssd", "extra-3", values)

    number = measured(result, row, "1")
    assert (number.value, number.n) == (0.5, 3)
    assert measured(result, row, "3") is None
    (line,) = (li for li in result.lines if li.kind == "measured")
    assert line.setup == "embedded/once@here/float32/1"
    others = {r for r, _, _ in result.left_out}
    assert others == set(table.row_labels) - {row}  # they were not measured


def test_a_similarity_is_the_mean_over_layers_then_over_texts():
    table = load_paper("easyspec").table("table-5")
    asked = next(a for a in values_to_measure(table) if dict(a.settings)["lp"] == 2)
    by_text = [[1.0, 0.6, 0.8], [1.0, 0.8, 1.0]]  # two texts, three layers
    states = ("h", "q", "k", "v", "Attn output")
    values = []
    for n, layers in enumerate(by_text):
        for shift, state in enumerate(states):
            for layer, number in enumerate(layers):
                at = f"{state}, layer {layer}"
                values.append(value_of(asked, at, n, number - 0.1 * shift))
    result = filled("easyspec", "table-5", values)
    for shift, state in enumerate(states):
        number = measured(result, "2", state)
        assert number.value == pytest.approx(2.6 / 3 - 0.1 * shift)
        assert list(number.without.values()) == pytest.approx(
            [2.8 / 3 - 0.1 * shift, 0.8 - 0.1 * shift]
        )
    (line, *_) = (li for li in result.lines if li.kind == "measured")
    assert "lowest 0.700 in layer 1" in line.note


def test_moving_a_cache_takes_the_mean_of_the_newest_machines_moves():
    table = load_paper("pearl").table("table-16")
    (asked,) = values_to_measure(table)
    values = []
    for column in table.column_labels:
        for n, seconds in enumerate((0.002, 0.004)):
            at = f"{column} tokens"
            values.append(value_of(asked, at, n, seconds))
            old = {"machine": "old", "date": "2025-01-02"}
            values.append(value_of(asked, at, n, 9.0, **old))
    result = filled("pearl", "table-16", values)
    (row,) = table.row_labels
    for column in table.column_labels:
        assert measured(result, row, column).value == pytest.approx(0.003)
    (line, *_) = (li for li in result.lines if li.kind == "measured")
    assert "@here/" in line.setup
    assert line.note.startswith("mean of 2 moves")
