"""Throughput against the speed of a request, with a slider over the batch.

Knows no run, no table and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speclab.views.stills.trade_off import TradeOff
from speclib.arguments import Count, checked
from speclib.errors import BadValue

from .picture_with_sliders import PictureOfEachValue


class TradeOffs(PictureOfEachValue):
    """A slider over the batch above a ``TradeOff``; ``first``: where it stands."""

    def __init__(self, lines: Mapping[str, Any], title: str, first: int):
        batches = list(next(iter(lines.values()), {}))
        if not batches:
            raise BadValue("there are no points: give name -> {batch: (speed, of all)}")
        if first not in batches:
            raise BadValue(
                f"first is {first}: give one of {', '.join(map(str, batches))}"
            )
        pictures = {batch: TradeOff(lines, title, batch) for batch in batches}
        super().__init__("batch", pictures, first, "trade-off")


@checked
def trade_off(lines: Mapping[str, Any], title: str, first: Count) -> TradeOffs:
    """A line per method through its batches, with a slider; see ``TradeOff``.

    ``lines``: name -> {batch: (tokens per second of a request, of all)}.
    """
    return TradeOffs(lines, title, first)
