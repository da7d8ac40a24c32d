"""The closed forms against known sums, a plain simulation, and the methods' own code."""

from __future__ import annotations

import random

import pytest

from speclib.data.latency import Latency
from speclib.decoding.simulate import simulate as simulated
from speclib.errors import SpeclibError
from speclib.experiment.cells import virtual as virtual_cells
from speclib.methods import METHODS
from speclib.theory import closed_forms as theory
from speclib.trace.metrics import total

ALPHAS = (0.0, 0.3, 0.7, 0.9, 0.97)


# -- known arithmetic ----------------------------------------------------------------------------
def test_geometric_sums():
    assert theory.geometric(0.5, 4) == 1.875  # 1 + 1/2 + 1/4 + 1/8
    assert theory.sd_accepted(0.5, 3) == 0.875  # 1/2 + 1/4 + 1/8
    assert theory.sd_tokens(0.5, 3) == 1.875
    assert theory.sd_tokens(1.0, 6) == 7 and theory.sd_tokens(0.0, 6) == 1
    assert theory.run_tokens(0.75) == 4 and theory.theorem_2(0.75) == 5


def test_pearl_at_the_ends():
    assert theory.pearl_tokens(1.0, 4) == 4  # every step commits its whole window
    assert theory.pearl_tokens(0.0, 4) == 1  # always pre-verify, always rejected
    assert theory.pearl_tokens(0.6, 1) == pytest.approx(
        1
    )  # a window of one is plain decoding
    # gamma 2, alpha 1/2, by hand: pre commits 1 and leads to post with 1/2, post commits 1.5 and
    # repeats with 1/4; the chain is in pre 3/5 of the time: 3/5 * 1 + 2/5 * 3/2
    assert theory.pearl_tokens(0.5, 2) == pytest.approx(1.2)


def test_speeds_by_hand():
    assert theory.sd_speed(1.0, 5, 1, 5) == pytest.approx(6 / 10)
    assert theory.pearl_speed(1.0, 5, 1, 5) == pytest.approx(5 / 5)
    assert theory.pearl_speed(1.0, 8, 1, 5) == pytest.approx(
        8 / 8
    )  # the draft is slower now
    assert theory.pearl_speed(1.0, 5, 1, 5, "pre-verify") == pytest.approx(1.0)
    # without post-verify, all accepted: a step of 5 for one token, then one of 5 for five more
    assert theory.pearl_speed(1.0, 5, 1, 5, "post-verify") == pytest.approx(6 / 10)
    assert theory.pearl_speed(0.0, 5, 1, 5, "post-verify") == pytest.approx(1 / 5)
    assert theory.pearl_speed(0.0, 5, 1, 5, "pre-verify") == pytest.approx(1 / 10)
    with pytest.raises(SpeclibError, match="without is 'both'"):
        theory.pearl_speed(0.5, 5, 1, 5, "both")


def test_duodecoding_by_hand():
    # doubt 1 at alpha 1/2 is the arcsine law, whose moments are 1/2, 3/8, 5/16
    assert [theory.right_among(0.5, k, 1.0) for k in (1, 2, 3)] == pytest.approx(
        [1 / 2, 5 / 8, 11 / 16]
    )
    assert [theory.right_among(0.7, k, 0.0) for k in (1, 3)] == pytest.approx(
        [0.7, 0.7]
    )
    # two sequences of two: a window (3/2 tokens) follows none with 5/8, itself with 1/2 * 5/8, so
    # 10/21 of the rounds have one; a round takes the draft one pass for both first words, then two
    assert theory.duodecoding_speed(0.5, 4, 1, 2, 2, 1.0) == pytest.approx(
        (11 + 15) / 21 / 3
    )
    # one sequence of two: with a window 2/5 of the rounds, as PEARL's steps above
    assert theory.duodecoding_speed(0.5, 2, 1, 4) == pytest.approx(1.2 / 4)
    assert theory.duodecoding_speed(1.0, 6, 1, 6) == pytest.approx(1)
    assert theory.duodecoding_speed(0.9, 3, 1, 6, 3, 0.5) == pytest.approx(
        1 / 6
    )  # of one each


def test_duodecoding_with_one_sequence_is_pearl_commit_for_commit():
    for alpha, gamma, c in ((0.3, 3, 6.0), (0.75, 6, 6.0), (0.95, 9, 6.0)):
        pearl, duo = (
            simulated(method, gamma=gamma, c=c, alpha=alpha, tokens=60, **settings)
            for method, settings in (
                ("pearl", {}),
                ("duodecoding", {"k": 1, "first": gamma}),
            )
        )
        assert [(e.end, e.tokens) for e in duo.trace.commits] == [
            (e.end, e.tokens) for e in pearl.trace.commits
        ]


@pytest.mark.parametrize(
    "k, gamma, alpha, doubt",
    [(1, 6, 0.7, 0.0), (2, 6, 0.7, 1.0), (3, 12, 0.5, 0.4), (2, 12, 0.9, 0.3)],
)
def test_duodecodings_code_runs_at_the_speed_of_its_formula(k, gamma, alpha, doubt):
    """4,000 tokens leave 2 to 4 %; the toys are seeded."""
    runs = [
        simulated(
            "duodecoding",
            gamma=gamma,
            c=6.0,
            alpha=alpha,
            doubt=doubt,
            k=k,
            seed=seed,
            tokens=500,
            target=1.0,
        ).stats
        for seed in range(8)
    ]
    assert total(runs).decode_speed == pytest.approx(
        theory.duodecoding_speed(alpha, gamma, 1 / 6, 1.0, k, doubt), rel=0.06
    )


def test_dsi_by_hand():
    assert theory.dsi_speed(1.0, 3, 0.2, 1.0) == pytest.approx(
        5
    )  # the drafter's own speed
    assert theory.dsi_speed(0.0, 3, 0.2, 1.0) == pytest.approx(1)  # plain decoding's
    assert theory.dsi_speed(0.8, 1, 0.2, 1.0) == pytest.approx(
        1 / (0.8 * 0.2 + 0.2 * 1)
    )  # Prop. 1
    # lookahead 2, alpha 1/2, t1 = 1/4: a run has 2 tokens; whole blocks 1/3 of 1/2 each, a single
    # right draft in 1/3 of the runs waits for the block's second, 1/4 + 1/4; then the target's 1
    assert theory.dsi_speed(0.5, 2, 0.25, 1.0) == pytest.approx(2 / (1 / 6 + 1 / 6 + 1))
    # one server of a target of four drafts looks at four at a time, whatever the lookahead
    assert theory.dsi_speed(0.5, 1, 0.25, 1.0, 1) == theory.dsi_speed(0.5, 4, 0.25, 1.0)


@pytest.mark.parametrize(
    "lookahead, servers, c", [(1, 5, 5.0), (1, 2, 5.0), (2, 3, 5.0)]
)
@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_dsis_code_is_within_an_eighth_of_its_formula(lookahead, servers, c, alpha):
    got = simulated(
        "dsi",
        lookahead=lookahead,
        servers=servers,
        c=c,
        alpha=alpha,
        tokens=1000,
        target=1.0,
    ).stats.decode_speed
    assert got == pytest.approx(
        theory.dsi_speed(alpha, lookahead, 1 / c, 1.0, servers), rel=0.125
    )


# -- brute force: steps counted on a row of coins, nothing of the engine -------------------------
def simulate(step, alpha, gamma, tokens=50_000):
    """(tokens, seconds, accepted, passes) of ``step(agrees, at, state)`` on independent coins."""
    coins = random.Random(5)
    agrees = [coins.random() < alpha for _ in range(tokens + 100)]
    at, state, seconds, passes, accepted = 0, 0, 0.0, 0, 0
    while at < tokens:
        moved, state, took, passed, ran = step(agrees, at, state, gamma)
        at, seconds, accepted, passes = (
            at + moved,
            seconds + took,
            accepted + passed,
            passes + ran,
        )
    return at, seconds, accepted, passes


def run_of(agrees, at, most):
    """How many agreements in a row begin at ``at``, at most ``most``."""
    return next((i for i in range(most) if not agrees[at + i]), most)


def sd_step(agrees, at, _state, gamma, draft=1.0, target=4.0):
    passed = run_of(agrees, at, gamma)
    return passed + 1, 0, gamma * draft + target, passed, 1


def pearl_step(agrees, at, state, gamma, draft=1.0, target=4.0):
    """``state`` 1: a block waits whose first token is committed; else only a first token is."""
    took = max(gamma * draft, target)
    if not state:
        return 1, int(agrees[at] and gamma > 1), took, int(agrees[at]), 1
    passed = run_of(agrees, at, gamma)
    whole = passed == gamma
    return passed + (not whole), int(whole), took, passed, 1


def no_pre_step(agrees, at, state, gamma, draft=1.0, target=4.0):
    """``state`` 1: a whole block waits untested; else the draft makes one, the target idles."""
    if not state:
        return 0, 1, gamma * draft, 0, 0
    passed = run_of(agrees, at, gamma)
    whole = passed == gamma
    return passed + (not whole), int(whole), max(gamma * draft, target), passed, 1


def no_post_step(agrees, at, state, gamma, draft=1.0, target=4.0):
    """``state`` 1: the rest of a block is verified while the draft idles, bonus at its end."""
    if not state:
        return (
            1,
            int(agrees[at] and gamma > 1),
            max(gamma * draft, target),
            int(agrees[at]),
            1,
        )
    passed = run_of(agrees, at, gamma - 1)
    return passed + 1, 0, target, passed, 1


STEPS = {None: pearl_step, "pre-verify": no_pre_step, "post-verify": no_post_step}


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("gamma", [1, 2, 4, 7])
def test_formulas_equal_counted_steps(alpha, gamma):
    """50,000 positions leave about 1 %; the coins are seeded, so it passes or it never does."""
    tokens, seconds, accepted, passes = simulate(sd_step, alpha, gamma)
    assert theory.sd_accepted(alpha, gamma) == pytest.approx(
        accepted / passes, rel=0.03
    )
    assert theory.sd_speed(alpha, gamma, 1, 4) == pytest.approx(
        tokens / seconds, rel=0.03
    )
    for without, step in STEPS.items():
        tokens, seconds, _, passes = simulate(step, alpha, gamma)
        assert theory.pearl_speed(alpha, gamma, 1, 4, without) == pytest.approx(
            tokens / seconds, rel=0.03
        ), without
        if without is None:
            assert theory.pearl_tokens(alpha, gamma) == pytest.approx(
                tokens / passes, rel=0.03
            )


# -- the methods' own code -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "alpha, within", [(0.0, 1e-9), (0.5, 0.05), (0.9, 0.08), (1.0, 0.02)]
)
@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_the_methods_run_at_the_speed_of_the_formulas(alpha, gamma, within):
    """1,600 tokens leave 1 to 3 %, and the cut at the end up to 2 %; the toys are seeded."""

    def speed(method, **settings):
        cell = virtual_cells.ToyCell(
            METHODS[method],
            Latency.ratio(4.0, 4.0),
            alpha,
            tokens=400,
            settings={"gamma": gamma, **settings},
        )
        outcomes = virtual_cells.run_requests(cell, requests=4)
        return total(outcome.stats for outcome in outcomes).decode_speed

    assert speed("speculative") == pytest.approx(
        theory.sd_speed(alpha, gamma, 1, 4), rel=within
    )
    for without in STEPS:
        assert speed("pearl", without=without) == pytest.approx(
            theory.pearl_speed(alpha, gamma, 1, 4, without), rel=within
        ), without


# -- inverses ------------------------------------------------------------------------------------
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.8, 0.95, 0.99])
def test_inverses_find_the_alpha_back(alpha):
    assert theory.alpha_from_accepted(theory.sd_accepted(alpha, 6), 6) == pytest.approx(
        alpha, abs=1e-5
    )
    for gamma in (6, "best"):
        window = theory.sd_best(alpha, 1, 5) if gamma == "best" else gamma
        speedup = 5 * theory.sd_speed(alpha, window, 1, 5)
        if gamma == "best" or speedup > 5 * theory.sd_speed(0, window, 1, 5):
            assert theory.alpha_from_speedup(speedup, gamma, 1, 5) == pytest.approx(
                alpha, abs=1e-4
            )
    if alpha > 0.75:  # below its maximum the run ratio's other branch is meant
        assert theory.alpha_from_run_ratio(
            theory.run_ratio(alpha, 5), 5
        ) == pytest.approx(alpha, abs=1e-4)


def test_the_run_ratio_has_two_solutions_and_the_higher_is_taken():
    printed = 49744 / 35092
    high = theory.alpha_from_run_ratio(printed, 5)
    assert high > 0.9 and theory.run_ratio(high, 5) == pytest.approx(printed, abs=1e-5)
    assert theory.run_ratio(0.42, 5) == pytest.approx(printed, abs=0.01)


def test_an_impossible_quantity_says_what_the_formula_can_give():
    with pytest.raises(
        SpeclibError, match=r"7 accepted drafts per pass at gamma 6.*0\.000 to 6\."
    ):
        theory.alpha_from_accepted(7, 6)
    with pytest.raises(SpeclibError, match="speed-up of 9"):
        theory.alpha_from_speedup(9, "best", 1, 5)


# -- Theorem 1 -----------------------------------------------------------------------------------
def test_the_best_window_is_a_neighbour_of_c_but_not_always_the_nearest():
    for c in (2.66, 2.88, 3.5, 4.93, 5.36):
        for alpha in (0.3, 0.8, 0.97, 0.99):
            assert theory.pearl_best(alpha, 1, c) in (int(c), int(c) + 1), (c, alpha)
    assert theory.pearl_best(0.97, 1, 5.36) == 6 != round(5.36)
    assert theory.pearl_best(0.80, 1, 5.36) == 5
