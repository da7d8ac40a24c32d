"""A plan: times are read back as they are, the order follows, and doubt is said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.brief_cost_ratio import measure_c_briefly

from speclab import plan
from speclab.experiment.cells.timed_passes import MachineTimes, TimedPasses, time_passes
from speclab.papers.bootstrap import Resamples, draw_resamples
from speclab.papers.estimates import Estimate
from speclab.planning.batch_limit import batch_limit
from speclab.planning.candidates import PLAIN, Candidate, candidates_at
from speclab.planning.measure_plans import Measured
from speclab.planning.plan import Plan
from speclab.planning.rank import best_of_each_method, rank
from speclib import SpeclibError, load_latency, open_world, simulate
from speclib.data import prompts
from speclib.data.latency import Curve, Latency
from speclib.data.pairs import load_pair
from speclib.decoding.auto_settings import request_settings
from speclib.methods.page_facts import LONGEST
from speclib.worlds.cost_ratio import CostRatio

LATENCY = "pearl/codellama-7-70"  # that of the toy pair


# -- candidates ------------------------------------------------------------------------
@pytest.mark.parametrize("c", [0.4, 1.0, 5.4, 200.0])
def test_each_candidate_is_a_method_with_settings_that_it_has(c):
    candidates = candidates_at(c)
    assert len(set(candidates)) == len(candidates)
    assert candidates[0] == PLAIN
    for candidate in candidates:
        settings = dict(candidate.settings)
        gamma = settings.pop("gamma", "auto")
        request_settings(candidate.method, gamma, settings)
        assert gamma == "auto" or 1 <= gamma <= LONGEST + 1


def test_draft_lengths_lie_about_c():
    lengths = {"speculative": [], "pearl": []}
    for candidate in candidates_at(5.4):
        if candidate.method in lengths:
            lengths[candidate.method].append(dict(candidate.settings)["gamma"])
    assert lengths["pearl"] == [3, 4, 5, 6]
    assert lengths["speculative"] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]


def test_rest_is_tried_where_the_pair_names_texts_to_look_up():
    def methods(**pair):
        return {candidate.method for candidate in candidates_at(5.4, **pair)}

    assert "rest" not in methods()
    assert methods(has_datastore=True) == methods() | {"rest"}


# -- times -----------------------------------------------------------------------------
def test_times_are_those_of_the_clock_that_ran():
    """The clock's own seconds, which are of the paper, must come back."""
    printed = load_latency(LATENCY)
    asked = [prompt.input for prompt in prompts.load("humaneval", 2)]
    with open_world("virtual", load_pair("toy")) as world:
        times = time_passes(world, asked)
    for timed in (times.alone, times.together):
        assert timed.c == pytest.approx(printed.c)
        assert timed.message == pytest.approx(0, abs=1e-12)
        for fed in (1, 3, 8, 40):
            assert timed.passes.target(fed) == pytest.approx(printed.target(fed))
            assert timed.passes.draft(fed) == pytest.approx(printed.draft(fed))


# -- the order -------------------------------------------------------------------------
def ranked(together: float = 1.0) -> dict[Candidate, float]:
    """The toy's candidates; passes that overlap take ``together`` times as long."""
    printed = load_latency(LATENCY)
    alone = TimedPasses(printed, message=0.0)
    slower = Latency(
        draft=Curve(((1, together * printed.draft(1)),)),
        target=Curve(((1, together * printed.target(1)),)),
    )
    times = MachineTimes(alone, TimedPasses(slower, message=0.0))
    candidates = [
        PLAIN,
        Candidate("speculative", (("gamma", 5),)),
        Candidate("pearl", (("gamma", 5),)),
    ]
    asked = [prompt.input for prompt in prompts.load("humaneval", 2)]
    return rank(
        load_pair("toy"), candidates, asked, 64, times, servers=1, cancel="after-op"
    ).speedups


def test_what_is_faster_comes_first_and_plain_decoding_is_one():
    speedups = ranked()
    assert [candidate.method for candidate in speedups] == [
        "pearl",
        "speculative",
        "autoregressive",
    ]
    assert speedups[PLAIN] == 1.0
    assert list(speedups.values()) == sorted(speedups.values(), reverse=True)


def test_devices_that_slow_each_other_down_cost_the_methods_that_work_at_once():
    quiet, shared = ranked(), ranked(together=2.0)
    for candidate, speedup in quiet.items():
        slower = 2 if candidate.method == "pearl" else 1
        assert shared[candidate] == pytest.approx(speedup / slower, rel=0.05)


def test_of_each_method_the_first_is_measured_and_plain_decoding_is_not_one():
    order = [
        Candidate("pearl", (("gamma", 5),)),
        PLAIN,
        Candidate("pearl", (("gamma", 4),)),
        Candidate("speculative", (("gamma", 3),)),
    ]
    assert best_of_each_method(order) == [order[0], order[3]]


# -- how sure --------------------------------------------------------------------------
def plan_of(**seconds_by_method: tuple[float, ...]) -> Plan:
    """A plan whose candidates took these seconds for ten tokens per prompt."""
    speeds = {}
    for method, seconds in seconds_by_method.items():
        times = draw_resamples(len(seconds))
        resampled = times.sum(1) * 10 / (times @ np.array(seconds))
        value = 10 * len(seconds) / sum(seconds)
        resamples = Resamples(resampled, len(seconds))
        speeds[Candidate(method)] = Estimate(value, resamples)
    virtual = dict.fromkeys(speeds, 1.0)
    measured = Measured(speeds, speeds, prompts=len(seconds), others=0.0)
    return Plan("toy", "humaneval", CostRatio.known(5.0), virtual, measured)


PLAIN_SECONDS = (4.0, 4.1, 4.2, 4.0)


def test_a_choice_that_is_faster_on_every_prompt_is_settled():
    made = plan_of(
        autoregressive=PLAIN_SECONDS,
        pearl=(1.0, 1.1, 1.0, 1.2),
        speculative=(2.0, 2.2, 2.1, 2.4),
    )
    assert made.choice == Candidate("pearl")
    assert made.is_settled
    assert made.lead.value == pytest.approx(8.7 / 4.3)
    assert "2.02 times as fast as speculative (95 %" in made.summary()


def test_a_choice_that_rests_on_one_prompt_of_four_is_open():
    made = plan_of(
        autoregressive=PLAIN_SECONDS,
        pearl=(1.0, 1.0, 1.0, 1.0),
        speculative=(0.99, 0.99, 0.99, 2.0),
    )
    assert made.choice == Candidate("pearl")
    assert not made.is_settled
    assert "which is open" in made.summary()


def test_plain_decoding_is_what_to_use_where_nothing_is_faster():
    made = plan_of(autoregressive=(1.0, 1.0), pearl=(1.2, 1.3))
    assert made.choice == PLAIN
    assert made.summary().startswith("Use plain decoding")


def test_a_busy_machine_is_named():
    made = plan_of(autoregressive=PLAIN_SECONDS, pearl=(1.0, 1.1, 1.0, 1.2))
    measured = replace(made.measured, others=0.3)
    assert "busy with other programs" in replace(made, measured=measured).summary()


@pytest.fixture
def brief_measuring(monkeypatch, own_cache) -> None:
    """c is measured within a second, and no later run goes by it."""
    measure_c_briefly(monkeypatch)


@pytest.mark.usefixtures("brief_measuring")
def test_one_prompt_says_that_it_says_nothing():
    asked = dict(prompts=1, max_new_tokens=16, check=1)
    made = plan("toy", **asked)
    assert len(made.measured.speeds) == 2
    assert "One prompt does not say how sure that is" in str(made)


@pytest.mark.usefixtures("brief_measuring")
def test_of_two_prompts_an_interval_is_given():
    made = plan("toy", prompts=2, max_new_tokens=16, check=1)

    assert made.measured.prompts == 2
    low, high = made.speedup(made.first_choice).interval
    assert 0 < low <= made.speedup(made.first_choice).value <= high < np.inf


@pytest.mark.usefixtures("brief_measuring")
def test_answers_that_end_with_their_first_commit_are_refused():
    with pytest.raises(SpeclibError, match="max_new_tokens of more than 1"):
        plan("toy", prompts=1, max_new_tokens=1, check=1)


@pytest.mark.slow
@pytest.mark.usefixtures("brief_measuring")
def test_a_plan_of_real_models_names_a_method_that_is_faster_than_plain_decoding():
    """On two prompts: on a single one, chance may decide."""
    made = plan(prompts=2, max_new_tokens=24, check=1)

    assert made.cost_ratio.trials > 0
    assert made.speedup(made.choice).value > 1
    assert made.frame().loc[made.choice.name, "measured"] > 1
    assert "Use " in made._repr_html_()


# -- what is wrong is said -------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong, said",
    [
        (dict(task="humanevil"), "humaneval"),
        (dict(pair="embedded/lama"), "embedded/"),
        (dict(prompts=0), "prompts"),
        (dict(check=0), "check"),
    ],
)
def test_a_wrong_value_is_named_before_anything_runs(wrong, said):
    with pytest.raises(SpeclibError, match=said):
        plan(**wrong)


# -- several requests at a time --------------------------------------------------------
def test_a_plan_says_up_to_which_batch_its_choice_holds():
    """Speculative decoding with every draft right: a round of 5 tokens feeds 5 rows, of
    which none is in vain; with every one wrong 1 token of 5 rows, and it never pays."""
    target = Curve(((1, 1.0), (11, 1.5)))
    limits = {}
    for alpha in (0.0, 0.8, 1.0):
        runs = [
            simulate("speculative", gamma=4, c=8, target=1.0, alpha=alpha, seed=seed)
            for seed in range(4)
        ]
        limits[alpha] = batch_limit([run.trace for run in runs], target)
    assert limits[0.0] == 0
    assert limits[1.0] > 1000
    # E = 3.36 by hand; drafting 0.5, a token 0.05, the fixed part 0.95
    assert limits[0.8] == pytest.approx(
        (0.95 * 2.36 - 0.5) / (0.05 * (5 - 3.36)), rel=0.35
    )


@pytest.mark.usefixtures("brief_measuring")
def test_a_plan_for_a_batch_is_made_on_both_clocks():
    made = plan("toy", prompts=1, max_new_tokens=12, check=1, batch=2)
    assert made.measured.prompts == 2
    assert "dsi" not in {candidate.method for candidate in made.virtual}
    assert made.virtual[PLAIN] == 1
    assert len(made.measured.speeds) == 2


def test_passes_that_cost_the_same_whatever_they_are_fed_have_no_limit():
    run = simulate("pearl", gamma=4, c=8, target=1.0, alpha=0.8)
    assert batch_limit([run.trace], Curve(((1, 1.0),))) == math.inf


def test_the_summary_names_the_batch_at_which_drafts_stop_paying():
    made = plan_of(autoregressive=PLAIN_SECONDS, pearl=(1.0, 1.1, 1.0, 1.2))
    assert "stop paying" not in made.summary()
    made = replace(made, limits={Candidate("pearl"): 3.4})
    assert "stop paying at about 3 of them" in made.summary()
