"""The races on pages without Python, computed while the pages are written.

Each is the methods' own code on the virtual clock, for every stop of some sliders. The
draft model is right at random words, so for every acceptance rate a draw is chosen: of
a few draws the one whose speeds are nearest to what is expected of a long text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import isfinite, log
from typing import Any, NamedTuple

from speclab.views.pages.race import Dial, Race, Values
from speclab.views.widgets.draws import most_typical
from speclab.views.widgets.timeline_explorer import expected_speedup
from speclib.decoding.compare import compare
from speclib.decoding.decode import Result
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import speedup_as_drawn
from speclib.drawing.timeline.widget import Timeline

WIDTH = 700  # pixels of the pictures; on a phone they scroll
C = 5.0  # draft passes in the time of a target pass, where no dial says otherwise


class Grid(NamedTuple):
    """What is computed: ``method`` and others, at each combination of the dials' stops.

    The first dial is that of alpha. A ``gamma`` of None is as c, so that no model waits
    for PEARL's other one.
    """

    title: str
    method: str
    dials: tuple[Dial, ...]
    tokens: int
    gamma: int | None = None

    def settings(self, values: Values) -> dict[str, Any]:
        """What is simulated at these values of the dials."""
        names = [dial.name for dial in self.dials]
        settings: dict[str, Any] = {"c": C, **dict(zip(names, values, strict=True))}
        return {"gamma": self.gamma or round(settings["c"]), **settings}


ALPHA = "α: how often the draft model is right"
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FEW_RATES = (0.3, 0.5, 0.8, 0.9, 1.0)

# The settings of lesson 00: its race, at every stop of its slider.
START = Grid(
    title="The race",
    method="speculative",
    dials=(Dial("alpha", ALPHA, RATES, 0.8),),
    tokens=20,
    gamma=4,
)
# Those on the first page and in lesson 20: gamma is as c, the best for PEARL.
FRONT = Grid(
    title="Three ways to write the same text",
    method="pearl",
    dials=(
        Dial("alpha", ALPHA, FEW_RATES, 0.8),
        Dial("c", "c: draft passes in the time of a target pass", (2.0, 5.0, 10.0), 5),
    ),
    tokens=24,
)


def races_of_lesson(name: str) -> dict[str, Race]:
    """The races of a lesson, by a piece of the source of their cell."""
    grids = {"00_start_here": START, "20_pearl": FRONT}
    return {"speclab.explorer(": compute(grids[name])} if name in grids else {}


@cache
def compute(grid: Grid) -> Race:
    """The pictures of a grid; the same ones each time."""
    pictures = {}
    for values in product(*(dial.stops for dial in grid.dials)):
        seed = choose_draw(grid, values[0])
        shown = Timeline(*simulate(grid, values, seed), width=WIDTH)
        pictures[values] = (shown.picture(), shown.story)
    return Race(grid.title, grid.dials, pictures)


@cache
def choose_draw(grid: Grid, alpha: float) -> int:
    """The seed whose speeds are nearest to the expected ones, where the other dials
    stand as they are shown first."""
    values = (alpha, *(dial.first for dial in grid.dials[1:]))
    settings = grid.settings(values)
    return most_typical(lambda seed: distance(simulate(grid, values, seed), settings))


def simulate(grid: Grid, values: Values, seed: int) -> list[Result]:
    """Plain decoding, speculative decoding, and the grid's method."""
    settings = grid.settings(values)
    return compare(grid.method, tokens=grid.tokens, seed=seed, **settings)


def distance(results: Sequence[Result], settings: dict[str, Any]) -> float:
    """How far the speeds as drawn are from the expected ones, as factors."""
    runs = [timeline_run(result) for result in results]
    total = 0.0
    for run in runs:
        expected = expected_speedup(run.trace.meta["method"], **settings)
        if isfinite(expected):
            total += abs(log(speedup_as_drawn(run, runs) / expected))
    return total
