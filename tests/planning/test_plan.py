"""A plan: real runs of toys, and a table whose numbers follow from their rows."""

from __future__ import annotations

from collections import defaultdict
from math import exp, log, sqrt
from statistics import mean, stdev

import pytest

from speclab import plan
from speclab.planning.plan import Plan, methods_for
from speclab.runs.rows import CellRuns, read_all
from speclab.runs.spec import Spec
from speclib import SpeclibError
from speclib.data.pairs import load_pair
from speclib.trace.metrics import Stats

T = 4.302653  # of Student, at 97.5 % with two degrees of freedom


# -- what is measured ------------------------------------------------------------------
@pytest.mark.usefixtures("own_cache")
def test_a_plan_follows_from_its_rows_by_hand_and_a_second_one_runs_nothing():
    said: list[str] = []
    asked = dict(methods=["pearl", "dsi"], prompts=3, max_new_tokens=12)
    table = plan("toy", **asked, say=said.append).frame()
    assert len([line for line in said if "prompt" in line]) == 9
    assert table["speed-up"].is_monotonic_decreasing
    assert table.loc["dsi", "settings"] == "servers 1"
    assert table.loc["autoregressive", "speed-up"] == 1

    speeds: dict[str, dict[str, float]] = defaultdict(dict)
    for row in [row for row in read_all() if row.key.on == "toy"]:
        stats = row.stats
        tokens, seconds = stats.tokens - stats.first_tokens, stats.seconds - stats.ttft
        speeds[row.group][row.key.method] = tokens / seconds
    for method in asked["methods"]:
        logs = [log(each[method] / each["autoregressive"]) for each in speeds.values()]
        half = T * stdev(logs) / sqrt(3)
        by_hand = [exp(mean(logs)), exp(mean(logs) - half), exp(mean(logs) + half)]
        shown = table.loc[method, ["speed-up", "from", "to"]]
        assert list(shown) == pytest.approx(by_hand, rel=1e-4)
        assert table.loc[method, ["n", "output"]].tolist() == [3, "exact"]

    said.clear()
    assert plan("toy", **asked, say=said.append).frame().equals(table)
    assert not said


@pytest.mark.usefixtures("own_cache")
def test_answers_that_end_with_their_first_commit_have_no_speed():
    with pytest.raises(SpeclibError, match="every answer ended with its first commit"):
        plan("toy", methods=["pearl"], prompts=1, max_new_tokens=1)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (dict(task="humanevil"), "humaneval"),
        (dict(pair="embedded/lama"), "embedded/"),
        (dict(methods=["perl"]), "pearl"),
        (dict(prompts=0), "prompts"),
    ],
)
def test_a_wrong_value_is_named_before_anything_runs(wrong, said):
    with pytest.raises(SpeclibError, match=said):
        plan(**wrong)


def test_methods_are_those_that_find_in_the_pair_what_they_need(tmp_path):
    everywhere = set(methods_for(load_pair("ladder/good")))
    assert {"autoregressive", "pearl", "prompt_lookup"} < everywhere
    assert set(methods_for(load_pair("embedded/eagle"))) - everywhere == {"eagle"}
    assert set(methods_for(load_pair("embedded/easyspec"))) - everywhere == {"easyspec"}
    own_texts = load_pair("ladder/good").model_copy(update={"datastore": str(tmp_path)})
    assert set(methods_for(own_texts)) - everywhere == {"rest"}


# -- what is said ----------------------------------------------------------------------
def runs(method: str, gamma: int | None, *seconds: float, **facts) -> CellRuns:
    """Runs that took these seconds for ten tokens; plain decoding took four."""
    spec = Spec(kind="measured", method=method, gamma=gamma, pair="toy", task="gsm8k")
    stats = [
        Stats(requests=1, tokens=11, first_tokens=1, seconds=1 + took, ttft=1)
        for took in seconds
    ]
    plain = [Stats(1, tokens=11, first_tokens=1, seconds=5, ttft=1)] * len(seconds)
    labels = [f"gsm8k/{number}" for number in range(len(seconds))]
    return CellRuns(spec, stats, plain, labels, gamma, c=5.0, **facts)


PLAIN = runs("autoregressive", None, 4, 4, 4)
PEARL = runs("pearl", 5, 1.0, 1.1, 1.2, how="by the clock")


def plan_of(*others: CellRuns, **failed: str) -> Plan:
    by_method = {each.spec.method: each for each in (PLAIN, *others)}
    return Plan("toy", "gsm8k", by_method, failed)


def test_the_fastest_is_named_with_the_line_that_uses_it():
    made = plan_of(runs("speculative", 3, 2.0, 2.1, 2.2), PEARL)
    assert list(made.frame().index) == ["pearl", "speculative", "autoregressive"]
    assert made.choice == "pearl"
    assert made.summary() == (
        "pearl is 3.65 times as fast as plain decoding, and the fastest: "
        "speclib.decode(prompt, pair='toy', method='pearl', gamma=5)"
    )
    assert "gamma of pearl: by the clock" in str(made)
    assert made.summary().replace("'", "&#x27;") in made._repr_html_()


def test_methods_that_the_prompts_do_not_tell_apart_are_named():
    made = plan_of(PEARL, runs("ssd", 4, 1.0, 1.2, 1.2), runs("tree", 2, 3, 3, 3))
    assert "the fastest (ssd may be as fast): " in made.summary()


def test_where_no_method_is_faster_plain_decoding_is_the_choice():
    made = plan_of(runs("tree", 2, 5.0, 5.0, 5.0))
    assert made.choice == "autoregressive"
    assert made.summary().startswith("No method is faster than plain decoding: ")


def test_busy_runs_other_tokens_and_failures_are_marked():
    busy = runs("ssd", 4, 2, 2, 2, is_busy=True, differs=1)
    made = plan_of(PEARL, busy, dsi="no room")
    assert list(made.frame()["output"]) == ["exact", "differs in 1, busy", "exact"]
    assert "busy: other programs ran at the same time" in made.notes()
    assert "dsi failed: no room" in made.notes()


def test_one_prompt_has_no_interval():
    made = Plan("toy", "gsm8k", {"pearl": runs("pearl", 5, 1.0)}, {})
    assert made.frame()[["from", "to"]].isna().all(axis=None)
