"""The maps of where SI and DSI gain, and the dots: judged from the finished SVG, text, figure."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from speclib import SpeclibError, compare, dots, explorer, regions
from speclib.papers.dsi_heatmaps import Maps
from speclib.papers.ledger import LedgerRow
from speclib.papers.load import load_paper
from speclib.theory.dsi_heatmaps import heatmaps
from speclib.views.charts.choose import chart
from speclib.views.tables.grid import Source, grid
from speclib.views.tables.html import table_html
from speclib.views.widgets.dsi_regions import CONTROLS

SVG = "{http://www.w3.org/2000/svg}"
PINK = {"#b5427f", "#d987b0", "#f2cfe1"}


def maps(svg: str) -> list[dict[str, int]]:
    """Of each map: cells by colour."""
    groups = [g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("shape-rendering")]
    return [
        {p.get("fill"): sum(map(int, re.findall(r"h(\d+)", p.get("d")))) for p in g}
        for g in groups
    ]


def slower(cells: dict[str, int]) -> int:
    return sum(count for colour, count in cells.items() if colour in PINK)


def points(svg: str) -> list[tuple[float, float]]:
    return [
        (float(c.get("cx")), float(c.get("cy")))
        for c in ET.fromstring(svg).iter(f"{SVG}circle")
    ]


def at(**values):
    """The maps with the sliders elsewhere."""
    return regions(
        {k: (*spec[:3], values.get(k, spec[3])) for k, spec in CONTROLS.items()}
    )


def test_with_one_draft_si_loses_exactly_where_it_is_right_less_often_than_its_cost():
    """(1 + a) / (1 + s) < 1 where a < s: of 100 x 100 middles 4,950, the diagonal is a draw."""
    si, _ = maps(at(gamma=1).picture())
    assert slower(si) == 4950 and sum(si.values()) == 10_000


@pytest.mark.parametrize("lookahead, servers", [(1, 1), (1, 8), (5, 2), (10, 1)])
def test_dsi_is_nowhere_slower_than_plain_decoding(lookahead, servers):
    shown = at(lookahead=lookahead, servers=servers, gamma=10)
    si, dsi = maps(shown.picture())
    assert slower(dsi) == 0 < slower(si) and sum(dsi.values()) == 10_000
    assert "slower than it in 0% of the map" in shown.text()


def test_the_circle_stands_where_the_sliders_do_and_the_maps_share_an_explorers():
    sliders = explorer(compare, {"method": ("dsi",), **CONTROLS})
    shown = regions(sliders.controls)
    before, picture = points(shown.image.value), shown.image.value
    sliders.controls["c"].value = 2.5  # 0.4 of the axis, from 0.2
    after = points(shown.image.value)
    assert [x1 - x0 for (x0, _), (x1, _) in zip(before, after, strict=True)] == [
        72.0,
        72.0,
    ]
    sliders.controls["alpha"].value = 0.3  # half of the axis down
    assert [
        y1 - y0
        for (_, y0), (_, y1) in zip(after, points(shown.image.value), strict=True)
    ] == [150.0, 150.0]
    sliders.controls["gamma"].value = 1
    assert maps(shown.image.value) != maps(picture)
    assert "SI, γ = 1: 0.93× plain" in shown.text()  # 1.3 / 1.4


def test_a_still_stands_beside_the_widget():
    data, meta = regions()._repr_mimebundle_()
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"
    assert (
        meta["image/png"]["width"] == 1100
        and "regions at c = 5.0" in data["text/plain"]
    )


def test_a_map_without_one_of_its_controls_names_it():
    with pytest.raises(SpeclibError, match="there is none for servers"):
        regions({k: v for k, v in CONTROLS.items() if k != "servers"})


def test_dots_stand_at_their_values_and_bars_at_the_means():
    shown = dots({"a": [1.0, 2.0], "b": [1.5]}, "speed-up")
    xs = [x for x, _ in points(shown.picture())]
    assert xs[2] - xs[0] == pytest.approx(xs[1] - xs[2], abs=0.011) == 280
    assert repr(shown).splitlines()[1:] == [
        "  a: 1.00 to 2.00, mean 1.50",
        "  b: 1.50 to 1.50, mean 1.50",
    ]
    assert shown._repr_mimebundle_()[0].keys() == {"text/plain", "image/png"}
    with pytest.raises(SpeclibError, match="has no values"):
        dots({"a": []}, "speed-up")


# -- in the paper's report -----------------------------------------------------------------------
def extra_1(**means):
    """Extra 1 with one value for all pairs in each column: 1 where none is given."""
    table = load_paper("dsi").table("extra-1")
    values = {
        (r, c): means.get(c, 1.0) for r in table.row_labels for c in table.column_labels
    }
    rows = [
        LedgerRow("dsi", "extra-1", r, c, "speedup", "x", "virtual", "", value)
        for (r, c), value in values.items()
    ]
    return SimpleNamespace(
        table=table,
        rows=rows,
        values={"virtual": values},
        kinds=["virtual"],
        figure=None,
    )


def test_heatmaps_have_acceptance_upwards_and_a_line_only_where_something_is_slower():
    """The paper on panel (a): SI gains in "the region above the pink region"."""
    rules = heatmaps((5,), repeats=None, dsi_lookahead=5)
    shares, alphas = np.array([0.1, 1.0]), np.array([0.0, 0.5, 1.0])
    code = np.ones((2, 3))
    figure = chart(
        SimpleNamespace(
            table=load_paper("dsi").table("figure-6"),
            values={"virtual": {("a", "b"): 1.0}},
            kinds=["virtual"],
            figure=Maps(rules, shares, alphas, code, code - 1, "the rules', sampled"),
        )
    )
    si = next(t for t in figure.data if t.type == "heatmap")
    speeds = np.array(si.z)
    assert (
        speeds.shape == (len(si.y), len(si.x)) == (101, 100)
        and si.y[-1] == si.x[-1] == 1
    )
    assert speeds[100, 0] > 0 > speeds[0, 99]  # always right and fast; never, slow
    assert [t.xaxis for t in figure.data if t.type == "contour"] == [si.xaxis]
    assert {a.text for a in figure.layout.annotations} >= {"(a) SI vs. non-SI"}


def test_a_rule_of_charge_is_worth_the_stroke_from_the_mean_without_to_the_mean_with_it():
    figure = chart(
        extra_1(**{"simulator": 2.0, "simulator, but SI's bonus token counts": 1.5})
    )
    told = {a.y: a.text for a in figure.layout.annotations if a.y}
    assert told["simulator"] == "<b>2.00</b>" and told["listing"] == "<b>1.00</b>"
    assert told["simulator, but SI's bonus token counts"] == "<b>1.50</b> (−0.50)"
    assert (
        told["printed in Table 1"] == "<b>1.52</b>"
    )  # (1.47 + 1.41 + ... + 1.60) / 10
    strokes = {t.y[0]: tuple(t.x) for t in figure.data if t.mode == "lines"}
    assert strokes["simulator, but SI's bonus token counts"] == (2.0, 1.5)


def test_a_table_too_wide_is_shown_with_rows_and_columns_exchanged_and_says_so():
    shown = extra_1(simulator=1.75)
    pair, source = "Phi3-14B / Phi3-4B / Alpaca", Source("virtual")
    upright, narrow = grid(shown), grid(shown).narrow()
    assert narrow.entry("simulator", pair, source) == upright.entry(
        pair, "simulator", source
    )
    assert len(upright.columns) == len(narrow.rows) == 15 and len(narrow.columns) == 10
    html = table_html(shown)
    assert (
        "<th>accounting</th>" in html and "columns: target / drafter / dataset" in html
    )
    assert re.search(r"<th scope=row>simulator</th><td [^>]*>1\.75<", html)
