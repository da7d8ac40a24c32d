"""The lecture on EasySpec's pictures: a pass over devices, curves, heat maps, trees.

Judged from the finished SVG and text; expected values are the paper's, or arithmetic.
"""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from speclib import (
    SpeclibError,
    curves,
    explorer,
    heat,
    layers,
    sequences,
    simulate,
    timeline,
)
from speclib.theory.layer_schedule import lasts, schedule, spans
from speclib.trace.events import Event, Trace
from speclib.views.timeline.run import timeline_run

SVG = "{http://www.w3.org/2000/svg}"
LLAMA = dict(layer=27.2e-3 / 32)  # EasySpec, Table 1: 36.76 tok/s; 32 layers


def found(svg: str, kind: str, *classes: str) -> list:
    """Elements of a kind and one of these classes."""
    return [
        e
        for e in ET.fromstring(svg).iter(SVG + kind)
        if not classes or e.get("class") in classes
    ]


def span(rect) -> tuple[float, float]:
    return float(rect.get("x")), float(rect.get("width"))


# -- the schedule ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "lp, printed",
    [
        (1, "0 1 2 3 4 5 6 7 8 9"),
        (2, "0 1-2 3-4 5-6 7-8 9"),
        (3, "0 1-3 4-6 7-8 9"),
        (4, "0 1-3 4-7 8 9"),
        (8, "0 1-3 4-8 9"),
    ],
)
def test_groups_are_written_as_table_6_does(lp, printed):
    """Its rule by hand for 10 layers: 0 alone, min(N, 3), then N each, the rest, the last alone."""
    assert " ".join(spans(10, lp)) == printed


def test_table_6_of_llama_at_lp_size_4_is_as_printed():
    assert ", ".join(spans(32, 4)) == (
        "0, 1-3, 4-7, 8-11, 12-15, 16-19, 20-23, 24-27, 28-30, 31"
    )


@pytest.mark.parametrize(
    "lp, ms", [(1, 27.2), (2, 18.8), (3, 16.0), (4, 14.88), (5, 14.32)]
)
def test_a_pass_is_shorter_by_an_attention_for_every_layer_that_joins_a_group(lp, ms):
    """32 layers of .56 + .29 ms in 32, 17, 12, 10, 9 groups: 27.2 - .56 * (32 - groups)."""
    assert 1e3 * lasts(schedule(32, lp, lp, 0.56e-3, 0.29e-3)) == pytest.approx(ms)


def test_a_gather_is_paid_once_per_group_and_by_one_device_never():
    """N = 4: 8 of the 10 groups share."""
    free, paid = (lasts(schedule(32, 4, 4, 2.0, 1.0, g)) for g in (0.0, 0.5))
    assert paid - free == 4.0
    alone = schedule(32, 4, 1, 2.0, 1.0, 0.5)
    assert lasts(alone) == 32 * 3.0 and not [p for p in alone if p.kind == "gather"]


def test_two_devices_take_turns_with_the_attentions_of_four_layers():
    """Groups 0 | 1-3 | 4-7 | 8 | 9 of 10 layers: 1 + 2 + 2 + 1 + 1 attentions in a row, 10 MLPs."""
    parts = schedule(10, 4, 2, 3.0, 1.0)
    assert lasts(parts) == 7 * 3 + 10
    second = [
        p.layer for p in parts if p.device == 1 and p.kind == "attention" and not p.copy
    ]
    assert second == [2, 5, 7]


@pytest.mark.parametrize("lp, devices", [(1, 1), (3, 2), (4, 4), (5, 8)])
def test_devices_do_one_thing_at_a_time_and_an_mlp_waits_for_its_attention(lp, devices):
    parts = schedule(12, lp, devices, 2.0, 1.0, 0.25)
    for device in range(devices):
        mine = [p for p in parts if p.device == device]
        assert all(a.end <= b.start for a, b in zip(mine, mine[1:], strict=False))
        assert [p.layer for p in mine if p.kind == "mlp"] == list(range(12))
    own = sorted(p.layer for p in parts if p.kind == "attention" and not p.copy)
    assert own == list(range(12))
    said = {p.layer: p.end for p in parts if p.kind == "attention" and not p.copy}
    assert all(said[p.layer] <= p.start for p in parts if p.kind == "mlp")


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: schedule(8, 0, 1, 1, 1), "lp is 0"),
        (lambda: schedule(8, 1, 1, -1, 1), "attention is -1"),
        (
            lambda: layers(1e-3, {"n": (1, 2, 1, 1)}),
            "no control 'n' here; known: lp, devices",
        ),
        (lambda: curves({}, "a"), "no values"),
        (lambda: curves({"a": {1: float("nan")}}, "a"), "no values"),
        (lambda: heat({"a": {"h": [1], "q": [1, 2]}}, "a"), r"\[1, 2\] values"),
    ],
)
def test_bad_input_is_named(call, told):
    with pytest.raises(SpeclibError, match=told):
        call()


# -- a pass over devices --------------------------------------------------------------------------
def test_bars_are_as_long_as_their_parts_last_and_both_passes_share_an_axis():
    shown = layers(**LLAMA, controls={"lp": (1, 8, 1, 4), "devices": (1, 8, 1, 4)})
    picture = shown.picture()
    exact, *_, last = found(picture, "rect", "idle")  # grounds: as wide as each pass
    assert span(last)[1] / span(exact)[1] == pytest.approx(14.86 / 27.2, abs=0.001)
    (first,) = {span(r)[1] for r in found(picture, "rect", "attention")}
    assert first / span(exact)[1] == pytest.approx(
        0.66 / 32, rel=0.06
    )  # less the white gap
    assert len(found(picture, "rect", "attention")) == 32 + 32
    assert len(found(picture, "rect", "attention copy")) == 2 * 3  # first, last layer
    assert len(found(picture, "rect", "mlp copy")) == 32 * 3


def test_on_one_device_a_fuzzy_pass_takes_as_long_as_an_exact_one():
    shown = layers(**LLAMA, controls={"devices": (1, 8, 1, 1)})
    assert shown.headings() == (
        "exact: one layer after the other, 27.20 ms",
        "fuzzy: N = 4, 27.20 ms, 1.00× as fast",
    )


def test_the_picture_follows_its_sliders_and_a_still_stands_beside_it():
    shown = layers(**LLAMA)
    before = shown.image.value
    shown.controls["lp"].value = 2
    assert (
        shown.image.value != before and "N = 2, 18.7" in shown.image.value
    )  # - 15 * .66 * .85
    data, meta = shown._repr_mimebundle_()
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"
    assert (
        "groups: 0, 1-2, 3-4" in data["text/plain"]
        and meta["image/png"]["width"] == 1100
    )


def test_a_slower_gather_than_attention_makes_fuzzy_passes_the_slower_ones():
    """Eight of ten groups gather: 22 attentions less cost 12.34 ms, eight gathers 8 times one."""
    slow = layers(**LLAMA, controls={"gather": (0.0, 2.0, 0.02, 1.6)})
    assert "0.98× as fast" in slow.headings()[1]


# -- curves and heat ------------------------------------------------------------------------------
def test_points_of_a_curve_stand_at_their_values_and_a_nan_is_left_out():
    shown = curves(
        {"a": {1: 1.0, 2: 2.0, 4: 1.5}, "b": {1: float("nan"), 2: 1.0}}, "t", "x"
    )
    points = [
        (float(c.get("cx")), float(c.get("cy")))
        for c in found(shown.picture(), "circle")
    ]
    assert len(points) == 4
    (x1, y1), (x2, y2), (x3, y3), (xb, yb) = points
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.02) and xb == x2 and yb == y1
    assert (y1 - y3) / (y1 - y2) == pytest.approx(0.5, abs=0.001)
    assert repr(shown).splitlines() == ["t", "  a: 1: 1, 2: 2, 4: 1.5", "  b: 2: 1"]


def test_an_axis_begins_where_it_is_asked_to():
    told = [
        t.text
        for t in found(
            curves({"a": {1: 0.72, 2: 0.75}}, "t", low=0.5).picture(), "text"
        )
    ]
    assert "0.50" in told and "0.45" not in told
    assert "0.50" not in curves({"a": {1: 0.72, 2: 0.75}}, "t").picture()


def test_names_at_the_ends_of_curves_do_not_overlap():
    shown = curves(
        {n: {1: 0.5, 2: y} for n, y in zip("abc", (0.9, 0.9, 0.901), strict=True)}, "t"
    )
    ends = sorted(
        float(t.get("y"))
        for t in found(shown.picture(), "text")
        if t.text in ("a", "b", "c")
    )
    assert min(b - a for a, b in zip(ends, ends[1:], strict=False)) > 15


def test_a_heat_map_is_white_at_one_and_darkens_below():
    shown = heat(
        {"N = 2": {"h": [1.0, 0.8], "q": [0.9, 0.85]}},
        "cosine",
        "layer",
        {"N = 2": [1]},
    )
    picture = shown.picture()
    cells = [r.get("fill") for r in found(picture, "rect", "cell")]
    light = [sum(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in cells]
    assert cells[0] == "#ffffff" and light[0] > light[2] > light[3] > light[1]
    (line,) = found(picture, "line", "split")
    assert float(line.get("x1")) == span(found(picture, "rect", "cell")[1])[0]
    assert "N = 2, q: 0.90 0.85" in repr(shown)
    assert shown._repr_mimebundle_()[0].keys() == {"text/plain", "image/png"}


# -- trees ----------------------------------------------------------------------------------------
PIECES = dict(enumerate(["", " a", " b", " c", " d", " e"]))


def by_hand(outcome=("accepted", "wasted", "rejected", "wasted"), *commit):
    """After " e": " a" with " b", then " c" with " d". The target takes " c", and " e" not " d";
    or, left out, " a", " b", and then " e"."""
    tree = Event(
        1.0,
        2.0,
        "draft",
        "grow",
        3,
        1,
        (1, 2, 3, 4),
        outcome,
        "virtual",
        2,
        3,
        3,
        parents=(-1, 0, -1, 2),
    )
    return SimpleNamespace(
        pieces=PIECES,
        trace=Trace(
            [
                Event(0.0, 1.0, "target", "score", 0, 0, (0,), (), "virtual", 0, 1),
                Event(1.0, 0.0, "controller", "commit", 1, 0, (5,), (), "virtual"),
                tree,
                Event(
                    3.0,
                    1.0,
                    "target",
                    "score",
                    4,
                    1,
                    (5, 1, 2, 3, 4),
                    (),
                    "virtual",
                    1,
                    5,
                    4,
                ),
                Event(4.0, 0.0, "controller", "commit", 5, 1, commit, (), "virtual"),
            ],
            {"method": "tree", "gamma": 2, "width": 2},
        ),
    )


def second():
    return by_hand(("wasted", "wasted", "accepted", "rejected"), 3, 5)


def test_a_tree_is_told_in_words():
    assert sequences(second()).text().splitlines() == [
        "tree, 1 rounds",
        "round 1: a tree of 4: 2 levels, at most 2 wide",
        "  - a",
        "    - b",
        "  * c",
        "    - d",
        "the target follows it for 1 of 2 levels, then writes “e”",
    ]
    ended = by_hand(("accepted", "accepted", "wasted", "wasted"), 1, 2)
    assert sequences(ended).text().endswith("2 of 2 levels, to the text's end")


def test_nodes_stand_behind_their_parents_and_only_the_way_has_colours():
    picture = sequences(second()).picture()
    nodes = found(picture, "rect", "accepted", "rejected", "dropped")
    assert [r.get("class") for r in nodes] == [
        "dropped",
        "dropped",
        "accepted",
        "rejected",
    ]
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = [
        (float(r.get("x")), float(r.get("y"))) for r in nodes
    ]
    assert ax == cx < bx == dx and ay == by < cy == dy
    edges = found(picture, "path", "edge")
    dark = [e for e in edges if e.get("stroke-width") == "2.5"]
    assert len(edges) == 4 and dark == edges[3:]  # the way is drawn on top


def test_siblings_that_differ_in_a_blank_alone_show_it():
    made = second()
    made.pieces = {**PIECES, 3: "a"}  # and 1 is " a"
    assert sequences(made).text().splitlines()[2:6] == [
        "  - ·a",
        "    - b",
        "  * a",
        "    - d",
    ]


def test_no_two_nodes_of_a_wide_tree_overlap_and_all_are_inside():
    made = simulate("tree", gamma=6, width=8, c=3.0, alpha=0.6, doubt=1.0, tokens=40)
    shown = sequences(made)
    for at in shown.slider.options:
        shown.slider.value = at
        nodes = [
            (*span(r), float(r.get("y")))
            for r in found(shown.picture(), "rect", "accepted", "rejected", "dropped")
        ]
        assert len(nodes) == len(shown.round.tokens)
        for i, (x, wide, y) in enumerate(nodes):
            assert x + wide < 1100 - 8 and y < shown.size[1] - 24
            assert not [
                o
                for o in nodes[:i]
                if o[2] == y and o[0] < x + wide and x < o[0] + o[1]
            ]


def test_a_tree_in_a_lane_is_a_cell_per_level_and_a_count_of_the_others():
    picture = timeline(second()).picture()
    shown = [
        (r.get("class"), r)
        for r in found(picture, "rect", "accepted", "rejected", "dropped", "wasted")
    ]
    assert [kind for kind, _ in shown] == ["accepted", "dropped", "rejected", "dropped"]
    (x, wide), (x2, _) = span(shown[0][1]), span(shown[2][1])
    assert x2 - x == pytest.approx(wide, abs=2)
    tips = [t.text for t in ET.fromstring(picture).iter(f"{SVG}title")]
    assert [t for t in tips if "not on the way: \u00a0a" in t]
    assert "+ 1" in picture and "4 candidates" in picture


def test_a_line_without_siblings_is_as_high_as_any_lane():
    heights = {
        r.get("height")
        for r in found(
            timeline(
                simulate("tree", gamma=3, width=1, c=3.0, alpha=0.8, tokens=12)
            ).picture(),
            "rect",
            "accepted",
            "score",
        )
    }
    assert len(heights) == 1


def test_a_label_names_width_n_and_a_missing_calibration():
    made = simulate(
        "easyspec", gamma=2, width=2, lp=3, calibrate=False, c=3.0, tokens=4
    )
    assert timeline_run(made).note == "γ = 2, N = 3, width 2, not calibrated"
    assert (
        timeline(simulate("tree", gamma=2, width=2, c=3.0, tokens=4))
        .text()
        .splitlines()[1]
        .startswith("Tree SD (γ = 2, width 2)")
    )


# -- runs that are there already ------------------------------------------------------------------
def test_an_explorer_of_stored_runs_shows_the_one_that_its_slider_names():
    runs = {
        g: [
            simulate("autoregressive", tokens=8),
            simulate("speculative", gamma=g, tokens=8),
        ]
        for g in (2, 3)
    }
    shown = explorer(runs, {"gamma": 3})
    assert (
        shown.text().startswith("explorer at gamma = 3\n")
        and "SD γ = 3" in shown.figures.value
    )
    shown.controls["gamma"].value = 2
    assert "SD γ = 2" in shown.figures.value
