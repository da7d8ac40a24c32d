"""Values for layers, caches and positions: they are stored, and match the runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.specs import MACHINE

import speclib
from speclab.measure.measure import measure
from speclab.runs.values import Value, ValuesStep, append_values, read_all_values
from speclib.data.prompts import load
from speclib.errors import BadValue

pytestmark = pytest.mark.usefixtures("rows_folder")

NEAR = Value(
    machine="m",
    what="layer similarity",
    pair="ladder/good",
    settings="task=stem lp=2",
    at="q, layer 3",
    n=0,
    value=0.5,
    date="2025-11-28T01:00:00",
    commit="abc1234",
)


def test_appended_values_are_read_back(rows_folder):
    values = [NEAR, replace(NEAR, n=1, value=0.1 + 0.2)]
    append_values(values)
    assert read_all_values() == values
    with (rows_folder / "m-values.csv").open("a") as killed:
        killed.write("m,layer simi")
    assert read_all_values() == values


@pytest.mark.parametrize("old, new", [("0.5", "half"), (",0,0.5", ",0.5")])
def test_a_damaged_value_is_named_with_its_file_and_line(rows_folder, old, new):
    append_values([NEAR])
    file = rows_folder / "m-values.csv"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(BadValue, match=r"m-values\.csv, line 2: "):
        read_all_values()


# -- measuring -------------------------------------------------------------------------
def measured(step: ValuesStep) -> dict[tuple[int, str], float]:
    """Returns a step's values by text or repeat number, and by name."""
    assert measure([step]) == {}
    values = [value for value in read_all_values() if value.pair == step.pair]
    assert {(value.machine, value.what) for value in values} == {(MACHINE, step.what)}
    return {(value.n, value.at): value.value for value in values}


@pytest.mark.slow
def test_acceptance_by_position_matches_the_run():
    pytest.importorskip("torch")
    settings = (("task", "gsm8k"), ("gamma", 3), ("tokens", 24))
    step = ValuesStep("acceptance by place", "ladder/poor", settings, 2)
    shares = measured(step)
    run = speclib.decode(
        load("gsm8k", 2)[1].input,
        pair=speclib.load_pair("ladder/poor"),
        method="speculative",
        gamma=3,
        max_new_tokens=24,
        world="virtual",
    )
    windows = [event.outcome for event in run.trace.operations if event.outcome]
    for place in range(3):
        outcomes = [window[place] for window in windows if len(window) > place]
        tested = [outcome for outcome in outcomes if outcome != "discarded"]
        share = tested.count("accepted") / len(tested)
        assert shares[1, f"place {place + 1}"] == pytest.approx(share)

    more = measured(step._replace(n=3))
    assert {key: more[key] for key in shares} == shares
    assert {number for number, _ in more} == {0, 1, 2}


@pytest.mark.slow
def test_a_longer_cache_takes_longer_to_move():
    pytest.importorskip("torch")
    pair = "embedded/llama3.1-8b-70b-shared"
    step = ValuesStep("cache transport", pair, (("lengths", (16, 1024)),), 5)
    seconds = measured(step)
    short = [seconds[n, "16 tokens"] for n in range(5)]
    assert 0 < min(short) < min(seconds[n, "1024 tokens"] for n in range(5))


def test_a_pair_without_replicas_has_nothing_to_move():
    settings = (("lengths", (16,)),)
    step = ValuesStep("cache transport", "embedded/llama-7b-70b", settings, 5)
    assert "has no replicas to move a cache between" in measure([step])[step]


@pytest.mark.slow
def test_states_of_one_layer_at_a_time_are_exact_and_of_more_are_not():
    """The first layer reads the embeddings in both passes."""
    pytest.importorskip("torch")
    settings = {"task": "stem", "length": 64}
    for lp in (1, 3):
        asked = tuple((settings | {"lp": lp}).items())
        step = ValuesStep("layer similarity", "embedded/easyspec", asked, 1)
        assert measure([step]) == {}
    by_lp: dict[str, dict[str, float]] = {}
    for value in read_all_values():
        by_lp.setdefault(value.settings[-1], {})[value.at] = value.value
    for state in ("h", "q", "k", "v", "Attn output"):
        exact = [near for at, near in by_lp["1"].items() if at.startswith(f"{state},")]
        fuzzy = [near for at, near in by_lp["3"].items() if at.startswith(f"{state},")]
        assert exact == pytest.approx([1] * len(exact), abs=1e-6)
        assert fuzzy[0] == pytest.approx(1, abs=1e-6)
        assert min(fuzzy) < 0.999
