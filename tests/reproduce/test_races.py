"""Races on pages: the virtual clock's, whole, small, and of the lessons."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from itertools import product

import pytest
from helpers import late

import speclib
from speclab.reproduce.races import (
    FRONT,
    START,
    WIDTH,
    choose_draw,
    compute,
    distance,
    races_of_lesson,
    simulate,
)
from speclab.views.pages.race import packed
from speclab.views.widgets.draws import CANDIDATES
from speclib import paths

LESSONS = {"00_start_here": START, "20_pearl": FRONT}
BUDGET = 300_000  # bytes that a race adds to a page


@pytest.mark.parametrize("grid", LESSONS.values(), ids=LESSONS)
def test_there_is_a_picture_at_every_stop_and_their_size_is_bounded(grid):
    race = compute(grid)
    stops = [dial.stops for dial in grid.dials]
    assert set(race.pictures) == set(product(*stops))
    for dial in grid.dials:
        assert dial.first in dial.stops
    data = packed(race)
    assert len(data) < BUDGET
    pictures = json.loads(gzip.decompress(b64decode(data)))["pictures"]
    assert len(pictures) == len(race.pictures)


@pytest.mark.parametrize(
    "grid, values, methods",
    [
        (START, (0.0,), ["autoregressive", "speculative"]),
        (START, (0.45,), ["autoregressive", "speculative"]),
        (FRONT, (0.8, 5.0), ["autoregressive", "speculative", "pearl"]),
        (FRONT, (0.3, 10.0), ["autoregressive", "speculative", "pearl"]),
    ],
)
def test_what_is_shown_is_what_the_virtual_clock_gives(grid, values, methods):
    """Simulates again, method by method."""
    settings = grid.settings(values)
    gamma = settings.pop("gamma")
    seed = choose_draw(grid, values[0])
    runs = []
    for method in methods:
        own = {} if method == "autoregressive" else {"gamma": int(gamma)}
        what = {**settings, **own, "tokens": grid.tokens, "seed": seed}
        runs.append(speclib.simulate(method, **what))
    again = speclib.timeline(*runs, width=WIDTH)
    assert compute(grid).pictures[values] == (again.picture(), again.story)


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_of_all_draws_the_one_nearest_to_the_expected_speeds_is_shown(alpha):
    chosen = choose_draw(START, alpha)
    settings = START.settings((alpha,))
    distances = [
        distance(simulate(START, (alpha,), seed), settings)
        for seed in range(CANDIDATES)
    ]
    assert distances[chosen] == min(distances)
    assert max(distances) > min(distances)


def test_the_first_race_has_the_settings_that_its_lesson_begins_with():
    notebook = paths.ROOT / "notebooks" / "learn" / "00_start_here.ipynb"
    cells = late.nbformat.read(notebook, as_version=4).cells
    parameters = next(
        c.source for c in cells if "parameters" in c.metadata.get("tags", [])
    )
    stated = {
        name: float(value)
        for name, value in re.findall(r"^(\w+): \w+ = ([\d.]+)", parameters, re.M)
    }
    shown = START.settings((START.dials[0].first,))
    assert stated["tokens"] == START.tokens
    assert stated.keys() & shown.keys() >= {"c", "gamma"}
    for name in stated.keys() & shown.keys():
        assert stated[name] == shown[name], name


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_race_has_its_cell_in_the_lesson(lesson):
    notebook = paths.ROOT / "notebooks" / "learn" / f"{lesson}.ipynb"
    sources = [cell.source for cell in late.nbformat.read(notebook, as_version=4).cells]
    (piece,) = races_of_lesson(lesson)
    assert any(piece in source for source in sources), piece
    assert races_of_lesson("70_read_a_table") == {}
