"""Runs that move on pages: the virtual clock's, whole, small, and of the lessons."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from itertools import product

import pytest
from helpers import late

import speclib
from speclab.reproduce.runs_for_pages import (
    DSI,
    DUODECODING,
    ENUMERATING,
    FRONT,
    NETWORK,
    PEARL,
    START,
    TURNS,
    choose_draw,
    compute,
    distance,
    places_of_lesson,
    simulate,
)
from speclab.theory.closed_forms import pearl_speed, sd_speed
from speclab.views.pages.layout import read_file
from speclab.views.pages.moving_runs import key_of, packed
from speclab.views.widgets.draws import CANDIDATES
from speclib import paths
from speclib.trace.metrics import stats

LESSONS = {
    "00_start_here": START,
    "10_speculative_decoding": TURNS,
    "20_pearl": PEARL,
    "30_dsi": DSI,
    "35_answer_or_enumerate": ENUMERATING,
    "40_duodecoding": DUODECODING,
    "90_several_machines": NETWORK,
}
GRIDS = {grid.name: grid for grid in (*LESSONS.values(), FRONT)}
KB = 1000
# What a page may become larger by: the runs, and once the script with its style.
BUDGETS = {"start": 6 * KB, "front": 20 * KB}
BUDGET_OF_OTHERS = 75 * KB
SCRIPT_BUDGET = 32 * KB
OUTCOMES = {"a": "accepted", "r": "rejected", "d": "discarded"}


def data_of(name: str) -> dict:
    """What the script gets of a grid."""
    return json.loads(gzip.decompress(b64decode(packed(compute(GRIDS[name])))))


def spelled(data: dict, letters: str) -> str:
    return " ".join(data["words"][data["letters"].index(letter)] for letter in letters)


@pytest.mark.parametrize("name", GRIDS)
def test_there_are_runs_at_every_stop_of_every_dial_and_their_size_is_bounded(name):
    grid = GRIDS[name]
    data = data_of(name)
    stops = [dial.stops for dial in grid.dials]
    assert set(data["settings"]) == {key_of(values) for values in product(*stops)}
    for dial in grid.dials:
        assert dial.first in dial.stops
        assert dial.low <= min(dial.stops)
        assert dial.high >= max(dial.stops)
    for text, dial, value in data["tries"]["buttons"]:
        assert text
        assert value in {dial.name: dial for dial in grid.dials}[dial].stops
    assert len(packed(compute(grid))) <= BUDGETS.get(name, BUDGET_OF_OTHERS)


def test_the_script_and_its_style_are_small():
    assert len(read_file("moving.js")) + len(read_file("moving.css")) <= SCRIPT_BUDGET


SAMPLES = [
    ("start", (0.0,)),
    ("start", (0.55,)),
    ("start", (1.0,)),
    ("front", (0.8, 5)),
    ("front", (0.3, 10)),
    ("pearl", (1, 0.8, 5)),
    ("pearl", (5, 0.8, 2)),
    ("pearl", (12, 0.0, 10)),
    ("pearl", (12, 1.0, 2)),
]


@pytest.mark.parametrize("name, values", SAMPLES)
def test_what_the_script_gets_is_what_the_virtual_clock_gives(name, values):
    """The oracle simulates again, method by method, and reads the traces itself."""
    grid = GRIDS[name]
    settings = grid.settings(values)
    alpha = dict(zip([dial.name for dial in grid.dials], values, strict=True))["alpha"]
    place = [dial.name for dial in grid.dials].index("alpha")
    seed = choose_draw(grid, place, alpha)
    gamma = settings.pop("gamma")

    data = data_of(name)
    numbers, expected = data["settings"][key_of(values)]
    methods = ["autoregressive", "speculative", "pearl"][: len(numbers)]
    for number, method in zip(numbers, methods, strict=True):
        own = {} if method == "autoregressive" else {"gamma": gamma}
        result = speclib.simulate(
            method, tokens=grid.tokens, seed=seed, **own, **settings
        )
        label, note, lanes, boxes, commits = data["runs"][number]
        assert note == (f"γ = {gamma}" if own else "")

        drawn = [(lanes[lane], start, lasts) for lane, _, start, lasts, _, _ in boxes]
        wanted = []
        for event in result.trace.operations:
            if event.is_drafting and not event.tokens and not event.dur:
                continue  # the text ended there: no box is drawn
            times = (round(1000 * event.ts, 3), round(1000 * event.dur, 3))
            wanted.append((event.device, *times))
        assert drawn == wanted

        outcomes = "".join(box[5] for box in boxes)
        counts = stats(result.trace)
        assert outcomes.count("a") == counts.accepted
        assert outcomes.count("r") == counts.rejected
        assert len(outcomes) == counts.drafted

        text = " ".join(spelled(data, words) for _, _, words, _ in commits if words)
        assert text == result.text
        assert commits[-1][1] == round(1000 * counts.seconds, 3)

    formulas = [1.0, sd_speed(alpha, gamma, 1 / settings["c"], 1.0)]
    formulas.append(pearl_speed(alpha, gamma, 1 / settings["c"], 1.0))
    assert expected == [pytest.approx(f, abs=0.006) for f in formulas[: len(numbers)]]


@pytest.mark.parametrize(
    "fan, doubt, alpha", [(0, 0, 0.5), (2, 0.8, 0.7), (4, 1.5, 0.9)]
)
def test_of_ssds_branches_one_is_shown_and_all_are_counted(fan, doubt, alpha):
    values = (fan, doubt, alpha, 4, 8)
    place = [dial.name for dial in ENUMERATING.dials].index("alpha")
    seed = choose_draw(ENUMERATING, place, alpha)
    what = dict(gamma=4, fan=fan, doubt=doubt, alpha=alpha, c=8, tokens=24, seed=seed)
    result = speclib.simulate("ssd", **what)

    data = data_of("enumerating")
    numbers, _ = data["settings"][key_of(values)]
    *_, pearl, ssd = (data["runs"][number] for number in numbers)
    assert (pearl[0], pearl[1]) == ("PEARL", "γ = 8")
    assert ssd[0] == "SSD"
    shown = "".join(box[5] for box in ssd[3])
    left_out = sum(box[6] for box in ssd[3] if len(box) > 6)
    assert len(shown) + left_out == result.stats.drafted
    assert shown.count("a") == result.stats.accepted
    assert shown.count("r") == result.stats.rejected
    writers = "".join(commit[3] for commit in ssd[4])
    assert writers.count("d") == result.stats.accepted


def test_the_window_that_a_pass_reads_is_the_end_of_what_was_drafted_before():
    """The script takes what became of a window's drafts from the round before."""
    data = data_of("pearl")
    windows = 0
    for numbers, _ in data["settings"].values():
        label, _, lanes, boxes, commits = data["runs"][numbers[-1]]
        assert label == "PEARL"
        drafted_before = ""
        for number in range(len(commits)):
            of_round = [box for box in boxes if box[1] == number]
            (read,) = [box[4] for box in of_round if lanes[box[0]] == "target"]
            drafted = [box[4] for box in of_round if lanes[box[0]] == "draft"]
            assert len(drafted) <= 1  # none where the window ends with the text
            assert drafted_before.endswith(read)
            windows += bool(read)
            drafted_before = "".join(drafted)
    assert windows > 300


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_of_all_draws_the_one_nearest_to_the_expected_speeds_is_shown(alpha):
    place = 0
    chosen = choose_draw(START, place, alpha)
    distances = [
        distance(simulate(START, (alpha,), seed)) for seed in range(CANDIDATES)
    ]
    assert distances[chosen] == min(distances)
    assert max(distances) > min(distances)


@pytest.mark.parametrize("lesson, grid", LESSONS.items())
def test_runs_are_of_the_settings_that_the_lesson_begins_with(lesson, grid):
    notebook = paths.ROOT / "notebooks" / "learn" / f"{lesson}.ipynb"
    cells = late.nbformat.read(notebook, as_version=4).cells
    parameters = next(
        c.source for c in cells if "parameters" in c.metadata.get("tags", [])
    )
    stated = {
        name: float(value)
        for name, value in re.findall(r"^(\w+): \w+ = ([\d.]+)", parameters, re.M)
    }
    if "tokens" in stated:
        assert stated["tokens"] == grid.tokens
    shown = grid.settings(grid.first_values)
    assert "c" in stated
    for name in stated.keys() & shown.keys():
        assert stated[name] == shown[name], name


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_place_has_its_cell_in_the_lesson(lesson):
    notebook = paths.ROOT / "notebooks" / "learn" / f"{lesson}.ipynb"
    sources = [cell.source for cell in late.nbformat.read(notebook, as_version=4).cells]
    places = places_of_lesson(lesson)
    assert places
    for piece in places:
        assert any(piece in source for source in sources), piece
    assert places_of_lesson("70_read_a_table") == {}
