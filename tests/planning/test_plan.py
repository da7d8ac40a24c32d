"""Plans: real runs of toys, and a table whose numbers follow from their rows."""

from __future__ import annotations

from collections import defaultdict
from math import exp, log, sqrt
from statistics import mean, stdev

import pytest

from speclab import plan
from speclab.planning.plan import methods_for
from speclab.runs.rows import read_all
from speclib import SpeclibError
from speclib.data.pairs import load_pair

T = 4.302653  # Student's t at 97.5 % with two degrees of freedom


# -- measuring -------------------------------------------------------------------------
@pytest.mark.usefixtures("own_cache")
def test_a_plans_numbers_follow_from_its_rows_and_a_second_plan_runs_nothing():
    said: list[str] = []
    asked = dict(methods=["pearl", "dsi"], prompts=3, max_new_tokens=12)
    table = plan("toy", **asked, say=said.append)
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
        assert list(shown) == pytest.approx(by_hand, abs=0.006)
        assert table.loc[method, ["n", "output"]].tolist() == [3, "exact"]

    one = plan("toy", methods=["pearl"], prompts=1, max_new_tokens=12)
    assert one[["from", "to"]].isna().all(axis=None)

    said.clear()
    assert plan("toy", **asked, say=said.append).equals(table)
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


def test_a_plan_has_the_methods_that_the_pair_supports(tmp_path):
    everywhere = set(methods_for(load_pair("ladder/good")))
    assert {"autoregressive", "pearl", "prompt_lookup"} < everywhere
    assert set(methods_for(load_pair("embedded/eagle"))) - everywhere == {"eagle"}
    assert set(methods_for(load_pair("embedded/easyspec"))) - everywhere == {"easyspec"}
    own_texts = load_pair("ladder/good").model_copy(update={"datastore": str(tmp_path)})
    assert set(methods_for(own_texts)) - everywhere == {"rest"}
