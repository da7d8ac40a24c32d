"""Curves and other stills, tested with the finished SVG and text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from helpers.svg import centres, elements, number, rectangles

from speclab import (
    acceptance,
    acceptance_by_place,
    curves,
    forward_passes,
    moving_curves,
)
from speclib import SpeclibError, simulate

NAN = float("nan")


# -- curves ----------------------------------------------------------------------------
def test_a_curves_points_are_at_their_values_and_nan_is_omitted():
    lines = {"a": {1: 1.0, 2: 2.0, 4: 1.5}, "b": {1: NAN, 2: 1.0}}
    still = curves(lines, "t", "x")

    (x1, y1), (x2, y2), (x4, y4), (b_x, b_y) = centres(still.picture())
    assert x2 - x1 == pytest.approx(x4 - x2, abs=0.02)  # evenly spaced, not to scale
    assert (y1 - y4) / (y1 - y2) == pytest.approx(0.5, abs=0.001)
    assert (b_x, b_y) == (x2, y1)
    assert repr(still).splitlines() == ["t", "  a: 1: 1, 2: 2, 4: 1.5", "  b: 2: 1"]


def test_names_at_the_ends_of_curves_do_not_overlap_each_other():
    lines = {"a": {1: 0.5, 2: 0.9}, "b": {1: 0.5, 2: 0.9}, "c": {1: 0.5, 2: 0.901}}
    picture = curves(lines, "t").picture()
    names = [text for text in elements(picture, "text") if text.text in lines]
    heights = sorted(number(name, "y") for name in names)
    distances = [lower - upper for upper, lower in pairwise(heights)]
    assert min(distances) > 15


@pytest.mark.parametrize("count", [7, 24])
def test_every_line_has_its_name_and_looks_different(count):
    """There are six colours; further lines are dashed."""
    lines = {f"line {i}": {1: 1.0, 2: 2.0 - i / 1000} for i in range(count)}
    still = curves(lines, "t", low=1.999)
    picture = still.picture()

    looks = set()
    for line in elements(picture, "polyline", "line"):
        looks.add((line.get("stroke"), line.get("stroke-dasharray")))
    assert len(looks) == count

    names = [text for text in elements(picture, "text") if text.text in lines]
    assert {name.text for name in names} == set(lines)
    assert max(number(name, "y") for name in names) < still.size[1]


def test_curves_follow_a_slider():
    charts = {2: {"a": {"x": 1.0, "y": 2.0}}, 8: {"a": {"x": 2.0, "y": 8.0}}}
    view = moving_curves(charts, {"c": 8}, "speed", low=0)
    assert view.text().startswith("curves at c = 8\nspeed\n  a: x: 2, y: 8")
    at_8 = centres(view.picture())
    view.controls["c"].value = 2
    assert centres(view.picture()) != at_8
    assert view.text().startswith("curves at c = 2\nspeed\n  a: x: 1, y: 2")
    assert view.image.value == view.picture()


def test_acceptance_by_position_has_its_runs_rates():
    runs = [
        simulate("speculative", gamma=3, alpha=[0.9, 0.6, 0.3], seed=seed)
        for seed in range(4)
    ]
    never = simulate("speculative", gamma=3, alpha=0.0, tokens=4)
    counts = acceptance(runs)
    view = acceptance_by_place({"given": runs, "counted": counts, "never": never})
    rates = {}
    for name, line in view.lines.items():
        rates[name] = [*line.items()]
    assert rates["given"] == rates["counted"] == [*enumerate(counts.conditional, 1)]
    assert rates["never"] == [(1, 0.0)]  # nothing else was tested


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: curves({}, "a"), "no values"),
        (lambda: moving_curves({}, {"c": 3}, "a"), "c is 3: give"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(SpeclibError, match=message):
        call()


# -- passes ----------------------------------------------------------------------------
def test_the_bars_of_a_pass_have_the_lengths_of_their_durations():
    still = forward_passes(1, 50)
    one, fifty = repr(still).splitlines()[1:]
    assert one.endswith("computes 13.5 billion operations: 0.043 ms")
    assert fifty.startswith("  50 tokens: reads 13.5 GB: 6.6 ms")
    first, second = rectangles(still.picture(), "reading")
    assert first.width == second.width  # weights are read once per pass
    _, computing = rectangles(still.picture(), "computing")
    # 50 tokens with 2 * 6.74e9 operations at 312e12/s; 13.48e9 bytes at 2.039e12/s
    assert computing.width / second.width == pytest.approx(2.160 / 6.611, abs=0.002)
