"""The maps of where SI and DSI gain, judged from the finished SVG and text."""

from __future__ import annotations

import re

import pytest
from helpers.svg import centres, elements

from speclab import explorer, regions
from speclab.views.widgets.dsi_regions import CONTROLS
from speclib import compare

PINK = {"#b5427f", "#d987b0", "#f2cfe1"}  # slower than plain decoding


def regions_at(**values):
    """The maps with some sliders away from their defaults."""
    controls = {}
    for name, (low, high, step, default) in CONTROLS.items():
        controls[name] = (low, high, step, values.get(name, default))
    return regions(controls)


def cells_by_colour(svg: str) -> list[dict[str, int]]:
    """The number of cells of a colour in each map."""
    maps = []
    for group in elements(svg, "g"):
        if group.get("shape-rendering"):
            maps.append({path.get("fill"): cells(path.get("d")) for path in group})
    return maps


def cells(path: str) -> int:
    """The number of cells in a path: each row of them begins with h and its length."""
    return sum(int(length) for length in re.findall(r"h(\d+)", path))


def slower_cells(map_cells: dict[str, int]) -> int:
    return sum(count for colour, count in map_cells.items() if colour in PINK)


def test_with_one_draft_si_loses_exactly_where_it_is_right_less_often_than_its_cost():
    """(1 + a) / (1 + s) < 1 if a < s: at 4,950 of 100 x 100 centres; the diagonal is a
    tie."""
    si, _ = cells_by_colour(regions_at(gamma=1).picture())
    assert slower_cells(si) == 4950
    assert sum(si.values()) == 10_000


@pytest.mark.parametrize("lookahead, servers", [(1, 1), (1, 8), (5, 2), (10, 1)])
def test_dsi_is_nowhere_slower_than_plain_decoding(lookahead, servers):
    view = regions_at(lookahead=lookahead, servers=servers, gamma=10)
    si, dsi = cells_by_colour(view.picture())
    assert slower_cells(dsi) == 0 < slower_cells(si)
    assert sum(dsi.values()) == 10_000
    assert "slower in 0% of the map" in view.text()


def test_the_circle_stands_where_the_sliders_do_and_the_maps_share_an_explorers():
    sliders = explorer(compare, {"method": ("dsi",), **CONTROLS}).controls
    view = regions(sliders)
    picture_before = view.image.value
    si_before, dsi_before = centres(picture_before)

    sliders["c"].value = 2.5  # 0.4 of the axis, from 0.2
    si_right, dsi_right = centres(view.image.value)
    assert si_right[0] - si_before[0] == 72.0
    assert dsi_right[0] - dsi_before[0] == 72.0

    sliders["alpha"].value = 0.3  # half of the axis down
    si_down, dsi_down = centres(view.image.value)
    assert si_down[1] - si_right[1] == 150.0
    assert dsi_down[1] - dsi_right[1] == 150.0

    sliders["gamma"].value = 1
    assert cells_by_colour(view.image.value) != cells_by_colour(picture_before)
    assert "SI, γ = 1: 0.93× plain" in view.text()  # 1.3 / 1.4
