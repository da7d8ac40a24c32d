"""A fitted draft has the paper's c on this machine; opening a world fits nothing."""

from __future__ import annotations

import json

import pytest

from speclab import machine_facts
from speclab.measure import fit as fitting
from speclab.measure.fit import MOST_TRIES, Shape, trained_shape
from speclib import paths
from speclib.data.latency import load_latency
from speclib.data.pairs import Pair, load_pair
from speclib.data.toml_files import names_under
from speclib.errors import BadValue
from speclib.worlds.cost_ratio import CostRatio
from speclib.worlds.processes import Processes

NAME = "embedded/llama-7b-70b"
FILE = Shape(4, 512, 8, 1184)
LEAST = Shape(3, 192, 3, 512)  # zoo/draft-fair as trained
WANTED = 5.416  # 49.94 / 9.22, PEARL's Table 10


# -- the search, with known values of c ------------------------------------------------
# The cost of a pass and of a layer without reading weights: about as the search
# assumes, on a machine with slow launches, and on a machine that only reads.
MACHINES = [(5e6, 1e6), (15e6, 4e6), (0, 0)]


def c_of(shape: Shape, per_pass: float, per_layer: float) -> float:
    """Returns c up to a constant factor; the target's cost is 1."""
    layer = 4 * shape.width**2 + 3 * shape.width * shape.ffn + per_layer
    return 1 / (per_pass + shape.layers * layer)


@pytest.mark.parametrize("per_pass, per_layer", MACHINES)
@pytest.mark.parametrize("c_of_file", [4.5, 5.0, 5.4, 5.9, 6.6])
def test_the_wanted_c_is_found_in_a_few_tries(c_of_file, per_pass, per_layer):
    tried = []

    def measure(shape: Shape) -> CostRatio:
        tried.append(shape)
        relative = c_of(shape, per_pass, per_layer) / c_of(FILE, per_pass, per_layer)
        return CostRatio.known(c_of_file * relative)

    shape, ratio = fitting.search(FILE, LEAST, WANTED, measure)
    assert tried[0] == FILE
    assert len(tried) <= MOST_TRIES
    assert ratio.value == pytest.approx(WANTED, rel=0.06)
    assert (shape.width, shape.heads) == (FILE.width, FILE.heads)


def test_no_fitted_draft_is_smaller_than_the_trained_one():
    shape, _ = fitting.search(FILE, LEAST, 100.0, lambda _: CostRatio.known(5.0))
    assert shape == FILE  # no other shape was closer
    assert FILE.at_cost(0, LEAST) == Shape(3, 512, 8, 512)


# -- which pairs are fitted ------------------------------------------------------------
def fitted_pairs() -> list[Pair]:
    pairs = [load_pair(name) for name in names_under(paths.DATA / "pairs")]
    return [pair for pair in pairs if pair.fitted]


@pytest.mark.parametrize("pair", fitted_pairs(), ids=str)
def test_a_pair_fitted_like_another_has_its_shapes_and_its_c(pair):
    other = pair if pair.fitted is True else load_pair(pair.fitted)
    assert other.fitted is True
    assert pair.draft.shape == other.draft.shape
    assert pair.target.shape == other.target.shape
    c = load_latency(other.latency).c
    assert load_latency(pair.latency).c == pytest.approx(c)


@pytest.mark.parametrize("name", ["toy", "shape/llama-7b-70b"])
def test_a_pair_that_needs_no_fit_is_refused(name, own_cache):
    assert not fitting.needs_fit(name)
    with pytest.raises(BadValue, match=f"{name}.*fitted = true.*latency"):
        fitting.fit(name)


# -- stored fits -----------------------------------------------------------------------
@pytest.fixture
def stored(own_cache) -> dict:
    """The file's contents for a draft of 5 layers fitted on this machine."""
    content = {
        "hardware": machine_facts.hardware(),
        "pairs": {
            f"{NAME} float32": {
                "file": FILE,
                "shape": (5, 512, 8, 960),
                "wanted": load_latency("pearl/llama2-7-70").c,
                "c": 5.3,
                "low": 5.2,
                "high": 5.4,
                "date": "2026-11-28T12:00:00",
            }
        },
    }
    store(content)
    return content


def store(content: dict) -> None:
    path = paths.CACHE / "runs" / "fitted.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("name", [NAME, "ladder/good", f"{NAME}-shared"])
def test_the_fitted_draft_is_used_by_every_pair_that_shares_it(name, stored):
    assert fitting.fitted_pair(name).draft.shape == (5, 512, 8, 960)
    assert not fitting.needs_fit(name)
    assert fitting.describe(name) == "draft 5 x 512, ffn 960, c 5.3 of 5.42 wanted"


def test_another_number_format_needs_its_own_fit(stored):
    assert not fitting.needs_fit(NAME, "float32")
    assert fitting.needs_fit(NAME, "bfloat16")
    assert fitting.fitted_pair(NAME, "bfloat16") == load_pair(NAME)
    assert fitting.describe(NAME, "bfloat16") == ""


@pytest.mark.parametrize("changed", ["hardware", "file", "wanted"])
def test_a_fit_for_another_machine_or_pair_file_is_not_used(changed, stored):
    if changed == "hardware":
        stored["hardware"] = [["cpu", "another"]]
    else:
        entry = stored["pairs"][f"{NAME} float32"]
        entry |= {"file": (4, 640, 10, 1184), "wanted": 2.5}
    store(stored)
    assert fitting.needs_fit(NAME)
    assert fitting.fitted_pair(NAME) == load_pair(NAME)


# -- real models -----------------------------------------------------------------------
@pytest.mark.slow
def test_only_the_command_fits_a_real_pair(own_cache, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(fitting, "TRIALS", 3)
    monkeypatch.setattr(fitting, "MOST_TRIES", 2)
    with Processes(load_pair(NAME)) as world:
        assert world.opened.pair == load_pair(NAME)
    assert fitting.needs_fit(NAME)

    fitted = fitting.fit(NAME)
    assert fitted.low <= fitted.c <= fitted.high
    assert fitted.wanted == pytest.approx(WANTED, abs=1e-3)
    assert fitted.shape >= trained_shape(load_pair(NAME))
    assert not fitting.needs_fit(NAME)
    assert fitting.fitted_pair(NAME) == load_pair(NAME).with_draft_shape(fitted.shape)
