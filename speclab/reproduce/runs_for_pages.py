"""The runs that move on pages without Python, computed while the pages are written.

Each is the method's own code on the virtual clock, for a grid of settings. The draft
model is right at random words, so for every acceptance rate a draw is chosen: of a few
draws the one whose speeds are nearest to what is expected of a long text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import isfinite, log
from typing import Any, NamedTuple

from speclab.views.pages.moving_runs import (
    Contestant,
    Dial,
    MovingRuns,
    Place,
    Tries,
    Try,
    Values,
)
from speclab.views.widgets.draws import CANDIDATES, most_typical
from speclab.views.widgets.timeline_explorer import TARGET_SECONDS, expected_speedup
from speclib.data.latency import Latency
from speclib.decoding.simulate import compare
from speclib.decoding.simulate import simulate as one_run
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import speedup_as_drawn
from speclib.methods import settings_of_methods

ALPHA = "α: how often the draft model is right"
GAMMA = "γ: drafts per round"
C = "c: draft passes in the time of a target pass"
BUDGET = "γ: drafts per round, all sequences together"
SERVERS = "servers: devices with a copy of the target model"
FAN = "fan: guesses after each number of accepted drafts"
DOUBT = "doubt: how much the draft model knows of where it may be wrong"
LOOKAHEAD = "lookahead: drafts that are worth a target pass"
MESSAGE = "message: seconds that it takes, one way"
HOW_OFTEN_RIGHT = Tries(
    "Let the draft model be right",
    (
        Try("always", "alpha", 1.0),
        Try("at four of five words", "alpha", 0.8),
        Try("at every second word", "alpha", 0.5),
        Try("never", "alpha", 0.0),
    ),
)


class Grid(NamedTuple):
    """What is computed: at each combination of the dials' stops, ``method`` and others.

    ``gamma``, ``c`` and ``doubt`` hold where no dial sets them; a ``gamma`` of None is
    as c, so that no model waits for PEARL's other one. ``beside``: further methods,
    each with the draft length that is "auto" for it.
    """

    name: str
    method: str
    dials: tuple[Dial, ...]
    tokens: int
    gamma: int | None = None
    c: float = 5.0
    doubt: float = 0.0
    beside: tuple[str, ...] = ()
    tries: Tries = HOW_OFTEN_RIGHT

    def settings(self, values: Values) -> dict[str, float]:
        """What is simulated at these values of the dials."""
        names = [dial.name for dial in self.dials]
        settings: dict[str, float] = {"c": self.c, "doubt": self.doubt}
        settings |= dict(zip(names, values, strict=True))
        if "gamma" not in settings:
            settings["gamma"] = self.gamma or round(settings["c"])
        for name in COUNTS & settings.keys():
            settings[name] = int(settings[name])
        return settings

    @property
    def first_values(self) -> Values:
        return tuple(dial.first for dial in self.dials)


OF_THE_DRAFT = {"alpha", "doubt"}  # settings of no method
COUNTS = {"gamma", "fan"}  # settings that are whole numbers
TENTHS = tuple(number / 10 for number in range(11))
TWENTIETHS = tuple(number / 20 for number in range(21))
FEW_RATES = (0, 0.5, 0.7, 0.8, 0.9, 1)

# The settings of lesson 00: its race, at every stop of its slider.
START = Grid(
    name="start",
    method="speculative",
    dials=(Dial("alpha", ALPHA, 0, 1, 0.05, 0.8, TWENTIETHS),),
    tokens=20,
    gamma=4,
)
# Those of lesson 20.
PEARL = Grid(
    name="pearl",
    method="pearl",
    dials=(
        Dial("gamma", GAMMA, 1, 12, 1, 5, (1, 2, 3, 5, 8, 12)),
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.8, (0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1)),
        Dial("c", C, 1, 12, 1, 5, (2, 5, 10)),
    ),
    tokens=32,
)
# Those of lesson 10.
TURNS = Grid(
    name="turns",
    method="speculative",
    dials=(
        Dial("gamma", GAMMA, 1, 10, 1, 4, (1, 2, 4, 6, 10)),
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.8, TENTHS),
        Dial("c", C, 1, 12, 1, 5, (2, 5, 10)),
    ),
    tokens=16,
)
# Those of lesson 30.
DSI = Grid(
    name="dsi",
    method="dsi",
    dials=(
        Dial("servers", SERVERS, 1, 8, 1, 3, (1, 2, 3, 5, 8)),
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.8, FEW_RATES),
        Dial("lookahead", LOOKAHEAD, 1, 10, 1, 2, (1, 2, 5, 10)),
    ),
    tokens=24,
)
# Those of lesson 35.
ENUMERATING = Grid(
    name="enumerating",
    method="ssd",
    dials=(
        Dial("fan", FAN, 0, 4, 1, 2, (0, 2, 4)),
        Dial("doubt", DOUBT, 0, 1.5, 0.1, 0.8, (0, 0.8, 1.5)),
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.7, (0.5, 0.7, 0.9)),
        Dial("gamma", GAMMA, 1, 12, 1, 4, (4, 7, 8)),
        Dial("c", C, 2, 16, 1, 8, (4, 8)),
    ),
    tokens=24,
    beside=("pearl",),
    tries=Tries(
        "Let the draft model's second choice be",
        (
            Try("unknown to it", "doubt", 0.0),
            Try("often right", "doubt", 0.8),
            Try("nearly always right", "doubt", 1.5),
        ),
    ),
)
# Those of lesson 40: the draft model itself decides how many sequences it writes.
DUODECODING = Grid(
    name="duodecoding",
    method="duodecoding",
    dials=(
        Dial("gamma", BUDGET, 1, 24, 1, 6, (1, 2, 4, 6, 12, 24)),
        Dial("c", C, 1, 24, 1, 6, (2, 6, 12, 24)),
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.7, FEW_RATES),
    ),
    tokens=24,
    doubt=0.6,
)
# Those of lesson 90: a target pass takes 0.1 seconds.
NETWORK = Grid(
    name="network",
    method="pearl",
    dials=(
        Dial("network", MESSAGE, 0, 0.1, 0.01, 0.02, (0, 0.01, 0.02, 0.05, 0.1)),
        Dial("gamma", GAMMA, 1, 15, 1, 5, (1, 3, 5, 7, 10, 15)),
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.8, FEW_RATES),
    ),
    tokens=16,
)
# Those on top of the index: gamma is as c, the best that it can be for PEARL.
FRONT = Grid(
    name="front",
    method="pearl",
    dials=(
        Dial("alpha", ALPHA, 0, 1, 0.05, 0.8, TENTHS),
        Dial("c", C, 1, 12, 1, 5, (2, 3, 5, 10)),
    ),
    tokens=24,
)


# -- places on pages -------------------------------------------------------------------
def front_race() -> Place:
    """The race on top of the index."""
    return Place(compute(FRONT), "race", "Three ways to write the same text")


def places_of_lesson(name: str) -> dict[str, Place]:
    """Where runs move in a lesson: by a piece of the source of their cell."""
    if name == "00_start_here":
        return {"speclab.explorer(": Place(compute(START), "race", "The race")}
    if name == "10_speculative_decoding":
        place = Place(compute(TURNS), "race", "Two ways to write the same text")
        return {"speclib.timeline(*runs)": place}
    if name == "20_pearl":
        runs = compute(PEARL)
        return {
            "speclab.rounds(": Place(runs, "rounds", "PEARL, one round at a time"),
            "speclab.explorer(": Place(runs, "race", "PEARL beside the others"),
        }
    if name == "30_dsi":
        place = Place(compute(DSI), "race", "DSI beside the others")
        return {"speclab.explorer(": place}
    if name == "35_answer_or_enumerate":
        title = "SSD beside the others; PEARL with γ = c"
        return {"speclab.explorer(": Place(compute(ENUMERATING), "race", title)}
    if name == "40_duodecoding":
        place = Place(compute(DUODECODING), "race", "DuoDecoding beside the others")
        return {"speclab.explorer(": place}
    if name == "90_several_machines":
        title = "Over a network: what no model does is waiting, or a message's way"
        return {"speclab.explorer(": Place(compute(NETWORK), "race", title)}
    return {}


# -- runs ------------------------------------------------------------------------------
@cache
def compute(grid: Grid) -> MovingRuns:
    """The runs of a grid; the same ones each time."""
    place_of_alpha = [dial.name for dial in grid.dials].index("alpha")
    seeds = {
        alpha: choose_draw(grid, place_of_alpha, alpha)
        for alpha in grid.dials[place_of_alpha].stops
    }
    runs = {}
    for values in product(*(dial.stops for dial in grid.dials)):
        runs[values] = simulate(grid, values, seeds[values[place_of_alpha]])
    draws = (
        f"Which words the draft model gets right is drawn at random: for each α, of "
        f"{CANDIDATES} draws the one that comes nearest to what is expected of a long "
        "text."
    )
    return MovingRuns(grid.name, grid.dials, runs, draws, grid.tries)


def choose_draw(grid: Grid, place_of_alpha: int, alpha: float) -> int:
    """The seed whose speeds are nearest to the expected ones; the other dials stand as
    they are shown first."""
    first = grid.first_values
    values = (*first[:place_of_alpha], alpha, *first[place_of_alpha + 1 :])
    return most_typical(lambda seed: distance(simulate(grid, values, seed)))


def simulate(grid: Grid, values: Values, seed: int) -> list[Contestant]:
    """Plain decoding, speculative decoding, what is beside, and the grid's method."""
    settings = grid.settings(values)
    message = settings.get("network", 0.0)
    latency = Latency.ratio(settings["c"], TARGET_SECONDS).over_network(0.0, message)
    what: dict[str, Any] = dict(tokens=grid.tokens, seed=seed, latency=latency)
    for name in OF_THE_DRAFT & settings.keys():
        what[name] = settings[name]
    of_methods: dict[str, Any] = {}
    for name, value in settings.items():
        if name in settings_of_methods():
            of_methods[name] = value
    *others, own = compare(grid.method, **what, **of_methods)
    for method in grid.beside:
        others.append(one_run(method, **what))
    contestants = []
    for result in (*others, own):
        run = timeline_run(result)
        meta = run.trace.meta
        own_settings = {"method": meta["method"], "gamma": meta.get("gamma")}
        expected = expected_speedup(**{**settings, **own_settings})
        contestants.append(Contestant(run, expected))
    return contestants


def distance(contestants: Sequence[Contestant]) -> float:
    """How far the speeds as drawn are from the expected ones, as factors."""
    runs = [contestant.run for contestant in contestants]
    total = 0.0
    for contestant in contestants:
        if not isfinite(contestant.expected):
            continue  # there is no formula for it
        ratio = speedup_as_drawn(contestant.run, runs) / contestant.expected
        total += abs(log(ratio))
    return total
