"""Curves that follow a slider: one chart for each value, each with its own axis.

Knows no run, no table and no clock: every chart's lines are there before it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speclab.views.stills.curves import Curves
from speclib.arguments import AnyNumber, checked
from speclib.errors import BadValue

from .picture_with_sliders import PictureOfEachValue


class MovingCurves(PictureOfEachValue):
    """A slider above curves.

    ``charts``: the slider's values -> the lines of ``Curves``. ``first``: {the slider's
    name: the value at which it stands first}.
    """

    def __init__(
        self,
        charts: Mapping[Any, Any],
        first: dict[str, Any],
        title: str,
        below: str,
        low: float | None,
    ):
        if len(first) != 1:
            raise BadValue(
                f"first is {first!r}: give {{the slider's name: the value shown first}}"
            )
        ((name, first_value),) = first.items()
        if first_value not in charts:
            raise BadValue(
                f"{name} is {first_value!r}: give one of {', '.join(map(str, charts))}"
            )
        pictures = {}
        for value, lines in charts.items():
            pictures[value] = Curves(lines, title, below, low)
        super().__init__(name, pictures, first_value, "curves")


@checked
def moving_curves(
    charts: Any,
    first: dict[str, Any],
    title: str,
    below: str = "",
    low: AnyNumber | None = None,
) -> MovingCurves:
    """Lines that follow a slider; see ``MovingCurves``, and ``curves`` for the rest."""
    return MovingCurves(charts, first, title, below, low)
