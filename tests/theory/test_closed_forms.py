"""The closed forms, compared with known sums, a simulation, and the methods' code."""

from __future__ import annotations

import math

import pytest

from speclab.theory import closed_forms as theory
from speclab.virtual.toy_requests import ToyCell, run_requests
from speclib.data.latency import Curve, Latency
from speclib.decoding.simulate import simulate
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.trace.metrics import total


# -- known arithmetic ------------------------------------------------------------------
def test_geometric_sums():
    assert theory.geometric(0.5, 4) == 1.875  # 1 + 1/2 + 1/4 + 1/8
    assert theory.sd_accepted(0.5, 3) == 0.875  # 1/2 + 1/4 + 1/8
    assert theory.sd_tokens(0.5, 3) == 1.875
    assert theory.sd_tokens(1.0, 6) == 7
    assert theory.sd_tokens(0.0, 6) == 1
    assert theory.run_tokens(0.75) == 4


def test_pearl_at_the_extreme_rates():
    assert theory.pearl_tokens(1.0, 4) == 4  # every step commits its whole window
    assert theory.pearl_tokens(0.0, 4) == 1  # always pre-verify, always rejected
    plain_decoding = theory.pearl_tokens(0.6, 1)  # a window of one
    assert plain_decoding == pytest.approx(1)
    # With gamma 2 and alpha 1/2, pre-verify commits 1 and leads to post-verify with
    # probability 1/2; post-verify commits 1.5 and repeats with probability 1/4. So 3/5
    # of steps are pre-verify: 3/5 * 1 + 2/5 * 3/2.
    assert theory.pearl_tokens(0.5, 2) == pytest.approx(1.2)


def test_speeds_by_hand():
    assert theory.sd_speed(1.0, 5, 1, 5) == pytest.approx(6 / 10)
    assert theory.pearl_speed(1.0, 5, 1, 5) == pytest.approx(5 / 5)
    draft_is_slower = theory.pearl_speed(1.0, 8, 1, 5)
    assert draft_is_slower == pytest.approx(8 / 8)
    with pytest.raises(SpeclibError, match="without is 'both'"):
        theory.pearl_speed(0.5, 5, 1, 5, "both")


@pytest.mark.parametrize(
    "alpha, without, speed",
    [
        (1.0, "pre-verify", 1.0),
        (0.0, "pre-verify", 1 / 10),
        # All accepted: a step of 5 for one token, then a step of 5 for five more.
        (1.0, "post-verify", 6 / 10),
        (0.0, "post-verify", 1 / 5),
    ],
)
def test_ablations_of_pearl_by_hand(alpha, without, speed):
    assert theory.pearl_speed(alpha, 5, 1, 5, without) == pytest.approx(speed)


def test_the_probability_of_a_right_token_among_several_by_hand():
    """At alpha 1/2, doubt 1 is the arcsine law, with moments 1/2, 3/8, 5/16."""
    doubtful = [theory.right_among(0.5, k, 1.0) for k in (1, 2, 3)]
    assert doubtful == pytest.approx([1 / 2, 5 / 8, 11 / 16])
    sure = [theory.right_among(0.7, k, 0.0) for k in (1, 3)]
    assert sure == pytest.approx([0.7, 0.7])


def test_duodecoding_by_hand():
    # Two sequences of two. After a round without a window, the next one has a window
    # (3/2 tokens) with probability 5/8, and after a round with one, 1/2 * 5/8. So 10/21
    # of rounds have one. A round takes one draft pass for both first words, then two.
    two_of_two = theory.duodecoding_speed(0.5, 4, 1, 2, 2, 1.0)
    assert two_of_two == pytest.approx((11 + 15) / 21 / 3)
    # One sequence of two: 2/5 of rounds have a window, as for PEARL's steps above.
    assert theory.duodecoding_speed(0.5, 2, 1, 4) == pytest.approx(1.2 / 4)
    assert theory.duodecoding_speed(1.0, 6, 1, 6) == pytest.approx(1)
    three_of_one = theory.duodecoding_speed(0.9, 3, 1, 6, 3, 0.5)
    assert three_of_one == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    "alpha, gamma, c", [(0.3, 3, 6.0), (0.75, 6, 6.0), (0.95, 9, 6.0)]
)
def test_duodecoding_with_one_sequence_equals_pearl_commit_for_commit(alpha, gamma, c):
    common = {"gamma": gamma, "c": c, "alpha": alpha, "tokens": 60}

    pearl = simulate("pearl", **common)
    duo = simulate("duodecoding", k=1, first=gamma, **common)

    pearl_commits = [(commit.end, commit.tokens) for commit in pearl.trace.commits]
    duo_commits = [(commit.end, commit.tokens) for commit in duo.trace.commits]
    assert duo_commits == pearl_commits


@pytest.mark.slow
@pytest.mark.parametrize(
    "k, gamma, alpha, doubt",
    [(1, 6, 0.7, 0.0), (2, 6, 0.7, 1.0), (3, 12, 0.5, 0.4), (2, 12, 0.9, 0.3)],
)
def test_duodecodings_code_runs_at_the_speed_of_its_formula(k, gamma, alpha, doubt):
    """4,000 tokens have an error of 2 to 4 %; the toys are seeded."""
    requests = []
    for seed in range(8):
        result = simulate(
            "duodecoding",
            gamma=gamma,
            latency=Latency.ratio(6.0),
            alpha=alpha,
            doubt=doubt,
            k=k,
            seed=seed,
            tokens=500,
        )
        requests.append(result.stats)

    speed = theory.duodecoding_speed(alpha, gamma, 1 / 6, 1.0, k, doubt)
    assert total(requests).decode_speed == pytest.approx(speed, rel=0.06)


def test_ssds_probability_of_a_hit_by_hand():
    """With doubt 1 and alpha 1/2, 1, 2 or 3 guesses include the right token with
    probability 1/2, 5/8, 11/16.
    """
    # Both drafts pass with probability 1/4, then one of two guesses; otherwise the
    # second or third.
    by_hand = 1 / 4 * 5 / 8 + 3 / 4 * (11 / 16 - 1 / 2) / (1 / 2)
    assert theory.ssd_hit(0.5, 2, 2, 1.0) == pytest.approx(by_hand)
    # A draft without doubt guesses nothing else after a rejection.
    assert theory.ssd_hit(0.5, 2, 4) == pytest.approx(1 / 4 * 1 / 2)
    assert theory.ssd_hit(1.0, 3, 1) == 1
    assert theory.ssd_hit(0.7, 3, 0, 1.0) == 0


def test_ssds_speed_by_hand():
    # Always a hit: 5 tokens in the longer of 5 draft passes and a target pass.
    assert theory.ssd_speed(1.0, 4, 1, 8) == pytest.approx(5 / 8)
    assert theory.ssd_speed(1.0, 4, 1, 3) == pytest.approx(5 / 5)
    assert theory.ssd_speed(1.0, 4, 1, 3, level=2.0) == pytest.approx(5 / 9)
    # Never a hit: speculative decoding.
    never = theory.ssd_speed(0.7, 3, 1, 9, fan=0)
    assert never == pytest.approx(theory.sd_speed(0.7, 3, 1, 9))
    # The paper's form: 0.8 * 4 + 0.2 * 3 tokens in 0.8 * 1.5 + 0.2 * (1 + 0.5).
    assert theory.ssd_speedup(0.8, 4, 3, 1.5, 0.5) == pytest.approx(3.8 / 1.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "gamma, fan, alpha, doubt, c",
    [(3, 1, 0.9, 0.0, 8.0), (3, 2, 0.7, 1.0, 8.0), (5, 4, 0.8, 0.5, 4.0)],
)
def test_ssds_code_runs_at_the_speed_of_its_formula(gamma, fan, alpha, doubt, c):
    """4,000 tokens have an error of 2 to 4 %; the toys are seeded."""
    requests = []
    for seed in range(8):
        how = {"gamma": gamma, "fan": fan, "alpha": alpha, "doubt": doubt}
        latency = Latency.ratio(c)
        result = simulate("ssd", seed=seed, tokens=500, latency=latency, **how)
        requests.append(result.stats)
    speed = theory.ssd_speed(alpha, gamma, 1 / c, 1.0, fan, doubt)
    assert total(requests).decode_speed == pytest.approx(speed, rel=0.06)


def test_dsi_by_hand():
    drafters_own_speed = theory.dsi_speed(1.0, 3, 0.2, 1.0)
    assert drafters_own_speed == pytest.approx(5)
    plain_decoding = theory.dsi_speed(0.0, 3, 0.2, 1.0)
    assert plain_decoding == pytest.approx(1)
    proposition_1 = 1 / (0.8 * 0.2 + 0.2 * 1)
    assert theory.dsi_speed(0.8, 1, 0.2, 1.0) == pytest.approx(proposition_1)
    # With lookahead 2, alpha 1/2 and t1 = 1/4, a run has 2 tokens: on average 1/3 whole
    # block of 1/2; in 1/3 of runs, a single right draft that waits for the block's
    # second, 1/4 + 1/4; and the target's pass of 1.
    two_at_a_time = theory.dsi_speed(0.5, 2, 0.25, 1.0)
    assert two_at_a_time == pytest.approx(2 / (1 / 6 + 1 / 6 + 1))
    # One server whose pass takes as long as four drafts scores four at a time, for any
    # lookahead.
    one_server = theory.dsi_speed(0.5, 1, 0.25, 1.0, 1)
    assert one_server == theory.dsi_speed(0.5, 4, 0.25, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "alpha, lookahead, servers, c",
    [
        (0.5, 2, 3, 5.0),
        (0.9, 1, 5, 5.0),
        (0.9, 1, 2, 5.0),
    ],
)
def test_dsis_code_is_within_an_eighth_of_its_formula(alpha, lookahead, servers, c):
    result = simulate(
        "dsi",
        lookahead=lookahead,
        servers=servers,
        latency=Latency.ratio(c),
        alpha=alpha,
        tokens=1000,
    )

    speed = theory.dsi_speed(alpha, lookahead, 1 / c, 1.0, servers)
    assert result.stats.decode_speed == pytest.approx(speed, rel=0.125)


DRAFT, TARGET = 1.0, 4.0  # seconds per pass


# -- the methods' own code -------------------------------------------------------------
def speed_of(method: str, alpha: float, **settings: object) -> float:
    """Returns the speed of a method's own code with toys, on texts of 400 tokens.

    There are four texts, or one if all drafts are right or all wrong, because then all
    texts are equal.
    """
    latency = Latency.ratio(4.0, 4.0)
    cell = ToyCell(METHODS[method], latency, alpha, tokens=400, settings=settings)
    return total(run_requests(cell, 1 if alpha in (0.0, 1.0) else 4)).decode_speed


@pytest.mark.slow
@pytest.mark.parametrize(
    "gamma, alpha, within",
    [
        # Each window, each rate, and both extremes of the rate.
        (1, 0.0, 1e-9),
        (1, 0.9, 0.08),
        (2, 0.5, 0.05),
        (5, 0.9, 0.08),
        (5, 1.0, 0.02),
    ],
)
def test_the_methods_run_at_the_speed_of_the_formulas(gamma, alpha, within):
    """1,600 tokens have an error of 1 to 3 %, and the cut at a text's end up to 2 %.

    At the extreme rates, 400 tokens have only the cut's error. The toys are seeded.
    """
    speed = speed_of("speculative", alpha, gamma=gamma)
    formula = theory.sd_speed(alpha, gamma, DRAFT, TARGET)
    assert speed == pytest.approx(formula, rel=within)

    for without in (None, "pre-verify", "post-verify"):
        speed = speed_of("pearl", alpha, gamma=gamma, without=without)
        formula = theory.pearl_speed(alpha, gamma, DRAFT, TARGET, without)
        assert speed == pytest.approx(formula, rel=within), without


# -- inverses --------------------------------------------------------------------------
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.8, 0.95, 0.99])
def test_inverses_recover_alpha(alpha):
    accepted = theory.sd_accepted(alpha, 6)
    of_accepted = theory.alpha_from_accepted(accepted, 6)
    assert of_accepted == pytest.approx(alpha, abs=1e-5)

    speedup = 5 * theory.sd_speed(alpha, 6, 1, 5)
    assert speedup > 5 * theory.sd_speed(0, 6, 1, 5)
    of_window_6 = theory.alpha_from_speedup(speedup, 6, 1, 5)
    assert of_window_6 == pytest.approx(alpha, abs=1e-4)

    best_window = theory.sd_best(alpha, 1, 5)
    speedup = 5 * theory.sd_speed(alpha, best_window, 1, 5)
    of_best_window = theory.alpha_from_speedup(speedup, "best", 1, 5)
    assert of_best_window == pytest.approx(alpha, abs=1e-4)

    if alpha > 0.75:  # lower ratios belong to the other branch
        run_ratio = theory.run_ratio(alpha, 5)
        of_run_ratio = theory.alpha_from_run_ratio(run_ratio, 5)
        assert of_run_ratio == pytest.approx(alpha, abs=1e-4)


def test_the_higher_of_two_solutions_for_the_run_ratio_is_returned():
    printed = 49744 / 35092
    higher = theory.alpha_from_run_ratio(printed, 5)
    assert higher > 0.9
    assert theory.run_ratio(higher, 5) == pytest.approx(printed, abs=1e-5)
    assert theory.run_ratio(0.42, 5) == pytest.approx(printed, abs=0.01)


def test_the_error_for_an_impossible_quantity_states_the_formulas_range():
    says = r"7 accepted drafts per pass at gamma 6.*0\.000 to 6\."
    with pytest.raises(SpeclibError, match=says):
        theory.alpha_from_accepted(7, 6)
    with pytest.raises(SpeclibError, match="speed-up of 9"):
        theory.alpha_from_speedup(9, "best", 1, 5)


# -- batches of requests ---------------------------------------------------------------
# Llama 3.1 8B on an H100, from data/latency/specdecode-bench, in milliseconds.
FIXED, PER_TOKEN, HEAD = 5.88590713 + 1.20683946, 0.0210103129, 2.13526175


@pytest.mark.parametrize(
    "alpha, gamma, draft, requests",
    [(0.7, 3, HEAD, 283), (0.7, 3, 0.0, 353), (0.9, 7, 0.0, 688)],
)
def test_the_batch_size_at_which_drafting_stops_paying_by_hand(
    alpha, gamma, draft, requests
):
    tokens = (1 - alpha ** (gamma + 1)) / (1 - alpha)
    limit = theory.batch_that_stops_paying(tokens, gamma + 1, FIXED, PER_TOKEN, draft)
    assert limit == pytest.approx(requests, abs=1)


def test_drafting_never_stops_paying_if_reading_the_cache_costs_most():
    what = dict(tokens=2.5, rows=4, fixed=7.0, per_token=0.02, kept=0.03)
    assert theory.batch_that_stops_paying(**what) == math.inf
    assert theory.batch_speedup(1e6, **what) > 1


def test_a_draft_that_saves_nothing_never_pays():
    limit = theory.batch_that_stops_paying(1.5, 4, 1.0, 0.01, draft=3.0)
    assert limit == 0


@pytest.mark.parametrize("tokens, alpha", [(1.0, 0.0), (4.0, 0.75), (10.0, 0.9)])
def test_the_rate_can_be_recovered_from_the_mean_run_length(tokens, alpha):
    assert theory.alpha_from_run_tokens(tokens) == pytest.approx(alpha)


@pytest.mark.parametrize("alpha, gamma", [(0.5, 2), (0.9, 6)])
def test_the_gain_ends_at_the_batch_size_of_the_formula(alpha, gamma):
    """With B* requests, the code is as fast as plain decoding, up to noise."""
    per_token = 0.1 if alpha > 0.8 else 0.03
    draft = 0.125
    costs = dict(fixed=1.0, per_token=per_token, draft=gamma * draft)
    tokens = theory.sd_tokens(alpha, gamma)
    batch = round(theory.batch_that_stops_paying(tokens, gamma + 1, **costs))
    assert 10 < batch < 60
    latency = Latency(
        draft=Curve(((1, draft),)), target=Curve(((1, 1.0),), per_token=per_token)
    )
    seconds = {}
    for name, settings in (("speculative", {"gamma": gamma}), ("autoregressive", {})):
        cell = ToyCell(METHODS[name], latency, alpha, 100, settings, batch=batch)
        seconds[name] = total(run_requests(cell, 2 * batch)).seconds
    expected = theory.batch_speedup(batch, tokens, gamma + 1, **costs)
    assert seconds["autoregressive"] / seconds["speculative"] == pytest.approx(
        expected, rel=0.05
    )
    assert expected == pytest.approx(1, abs=0.02)
