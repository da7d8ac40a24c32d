"""Throughput against the speed of a request: what is drawn is what was given."""

from __future__ import annotations

import re

import pytest
from speclab.views.stills.trade_off import AHEAD, BEHIND, TradeOff

import speclab
from speclib.errors import BadValue

LINES = {
    "plain": {1: (10.0, 10.0), 8: (9.0, 72.0), 64: (6.0, 384.0)},
    "PEARL": {1: (30.0, 30.0), 8: (18.0, 144.0), 64: (5.0, 320.0)},
}


def rings(picture: TradeOff) -> dict[str, str]:
    """The colour of each ring, by the line that has a dot in it."""
    found = {}
    for circle in re.findall(r'<circle [^>]*fill="none"[^>]*>', picture.drawing()):
        cx, cy = (float(re.search(f'{c}="([^"]+)"', circle)[1]) for c in ("cx", "cy"))
        for name, points in picture.lines.items():
            point = points[picture.batch]
            x, y = picture.x_of(point.speed), picture.y_of(point.throughput)
            if abs(x - cx) < 0.1 and abs(y - cy) < 0.1:
                found[name] = re.search('stroke="([^"]+)"', circle)[1]
    return found


@pytest.mark.parametrize("batch, winner", [(1, "PEARL"), (8, "PEARL"), (64, "plain")])
def test_the_highest_throughput_of_a_batch_has_the_black_ring(batch, winner):
    picture = TradeOff(LINES, "tokens per second", batch)
    assert picture.winner == winner
    loser = next(name for name in LINES if name != winner)
    assert rings(picture) == {winner: AHEAD, loser: BEHIND}
    assert f"the highest throughput at batch {batch}: {winner}" in repr(picture)


def test_faster_requests_stand_further_right_and_more_throughput_higher():
    picture = TradeOff(LINES, "tokens per second", 1)
    assert picture.x_of(30.0) > picture.x_of(10.0)
    assert picture.y_of(384.0) < picture.y_of(320.0)
    width, height = picture.size
    for points in picture.lines.values():
        for point in points.values():
            assert 0 < picture.x_of(point.speed) < width
            assert 0 < picture.y_of(point.throughput) < height


def test_the_slider_moves_the_rings():
    view = speclab.trade_off(LINES, "tokens per second", first=8)
    assert view.shown.batch == 8
    view.controls["batch"].value = 64
    assert view.shown.winner == "plain"
    assert "rings: batch 64" in view.image.value
    assert "batch" in view.text()


@pytest.mark.parametrize(
    "lines, first, message",
    [
        ({}, 1, "there are no points"),
        ({"a": {1: (1.0,)}}, 1, "a point is"),
        ({"a": {1: (0.0, 1.0)}}, 1, "a point is"),
        (LINES, 2, "give one of 1, 8, 64"),
        (LINES | {"SSD": {1: (1.0, 1.0)}}, 8, "'SSD' has no point of batch 8"),
    ],
)
def test_what_cannot_be_drawn_is_refused(lines, first, message):
    with pytest.raises(BadValue, match=message):
        speclab.trade_off(lines, "tokens per second", first=first)
