"""DSI's rules of charge against the printed listing, enumeration, a timeline and scipy.

Random runs are seeded, so a test passes or it never does; 5 standard errors are allowed, which a
right formula would exceed once in a million seeds.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import statistics
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from speclib.errors import SpeclibError
from speclib.theory import dsi_accounting as accounting
from speclib.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    dsi_time,
    si_time,
    switched,
)
from speclib.theory.dsi_heatmaps import ALPHAS, LOOKAHEADS, SHARES, heatmaps


# -- the printed listing, as it stands -----------------------------------------------------------
def listing(share, lookahead, tokens, get_num_accepted):
    cost, got = 0.0, 0
    while got < tokens:
        got += get_num_accepted(lookahead) + 1
        cost += lookahead * share + 1
    return cost


def row_of(coins):
    """get_num_accepted on a row of coins: the right ones up to the first wrong, at most so many."""
    coins = iter(coins)
    return lambda most: sum(
        1 for _ in itertools.takewhile(bool, (next(coins) for _ in range(most)))
    )


def weights(alpha, n):
    """(coins, their probability) for every row of n coins."""
    for coins in itertools.product((True, False), repeat=n):
        yield coins, math.prod(alpha if coin else 1 - alpha for coin in coins)


def within(values, expected):
    error = statistics.stdev(values) / math.sqrt(len(values))
    return abs(statistics.fmean(values) - expected) < 5 * error


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("lookahead", [1, 2, 3, 7])
def test_the_expectation_of_si_is_the_listing_over_every_row_of_coins(alpha, lookahead):
    mean = sum(
        chance * listing(0.2, lookahead, 4, row_of(coins))
        for coins, chance in weights(alpha, 4 + lookahead)
    )
    rounds = accounting.si_rounds(alpha, lookahead, 4)
    assert rounds * (0.2 * lookahead + 1) == pytest.approx(mean)
    assert si_time(0.2, alpha, lookahead, 4) == pytest.approx(mean)


def test_rounds_by_hand():
    assert accounting.si_rounds(0.5, 1, 2) == 1.5  # one, and a second for half of them
    assert accounting.si_rounds(0.0, 5, 50) == 50
    assert accounting.si_rounds(1.0, 5, 50) == 9  # of 6 tokens
    assert accounting.si_rounds(1.0, 200, 50) == 1


def test_a_lookahead_beyond_the_text_needs_a_round_per_wrong_draft():
    """So rounds are 1 + binomial, in the mean and run by run."""
    rounds = 1 + stats.binom.mean(49, 0.3)
    assert accounting.si_rounds(0.7, 60, 50) == pytest.approx(rounds)
    cells = np.full(20_000, 0.01)
    found = accounting.si_sampled(cells, 0.7, 60, 50, repeats=1, seed=3) / (
        60 * 0.01 + 1
    )
    assert within(found.tolist(), rounds)
    counts = np.bincount(np.rint(found).astype(int) - 1, minlength=50)[8:23]
    chances = stats.binom.pmf(np.arange(8, 23), 49, 0.3)
    fit = stats.chisquare(counts, counts.sum() * chances / chances.sum())
    assert fit.pvalue > 1e-4


@pytest.mark.parametrize(
    "alpha, lookahead", [(0.2, 3), (0.63, 5), (0.95, 10), (0.99, 200)]
)
def test_sampled_runs_are_those_of_the_listing(alpha, lookahead):
    rng = random.Random(7)

    def accepted(most):
        return next((i for i in range(most) if rng.random() >= alpha), most)

    exact, a_round = (
        float(accounting.si_rounds(alpha, lookahead, 50)),
        0.1 * lookahead + 1,
    )
    literal = [listing(0.1, lookahead, 50, accepted) / a_round for _ in range(3000)]
    cells = np.full(3000, 0.1)
    ours = (
        accounting.si_sampled(cells, alpha, lookahead, 50, repeats=1, seed=1) / a_round
    )
    assert within(literal, exact) and within(ours.tolist(), exact)
    counts = [
        np.bincount(np.rint(rounds).astype(int), minlength=51)
        for rounds in (literal, ours)
    ]
    often = np.array(counts)[:, np.min(counts, 0) >= 10]
    assert stats.chi2_contingency(often).pvalue > 1e-4


def test_sampling_repeats_by_seed_averages_and_has_the_shape_of_the_grid():
    share, alpha, ahead = (
        SHARES[:4, None, None],
        ALPHAS[None, ::25, None],
        np.array([1, 5, 10]),
    )
    one = accounting.si_sampled(share, alpha, ahead, 20, repeats=2, seed=4)
    assert one.shape == (4, 5, 3)
    assert (
        one == accounting.si_sampled(share, alpha, ahead, 20, repeats=2, seed=4)
    ).all()
    assert (
        one != accounting.si_sampled(share, alpha, ahead, 20, repeats=2, seed=5)
    ).any()
    exact = accounting.si_rounds(alpha, ahead, 20) * (ahead * share + 1)
    assert one[:, 0] == pytest.approx(exact[:, 0]) and one[:, 4] == pytest.approx(
        exact[:, 4]
    )
    many = accounting.si_sampled(share, alpha, ahead, 20, repeats=4000, seed=4)
    assert many == pytest.approx(exact, rel=0.03)


# -- DSI: a timeline of passes, text by text -----------------------------------------------------
def timeline(coins, share, lookahead, beside, late):
    """Time until len(coins) + 1 tokens are verified; coin i: draft i is right, after right text.

    From each rejection on: a pass on every i blocks of drafts, as soon as they are there, and on
    the last draft; ``beside`` it, whenever more is verified, one on the verified text alone. A
    pass gives the target's own token beyond its drafts, a ``late`` one on blocks does not."""
    start, done, tokens = 0.0, 0, len(coins) + 1
    while done < tokens:
        room = tokens - 1 - done
        right = row_of(coins[done:])(room)
        passes = [
            (h * share + 1, h, not late or h == room) for h in range(0, room, lookahead)
        ]
        passes += [(room * share + 1, room, True)] + [(1.0, 0, True)] * beside
        heapq.heapify(passes)
        verified = 0
        while verified <= right:
            now, h, beyond = heapq.heappop(passes)
            found = min(h, right) + (beyond or right < h)
            if found > verified:
                verified = found
                if beside:
                    heapq.heappush(passes, (now + 1, verified, True))
        start, done = start + now, done + verified
    return start


@pytest.mark.parametrize("share", [0.07, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("lookahead", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "rules",
    [
        {"beside": beside, "late": late}
        for beside in (True, False)
        for late in (True, False)
    ],
)
def test_the_expectation_of_dsi_is_its_timeline_over_every_text(
    share, lookahead, rules
):
    for alpha in (0.0, 0.4, 0.9, 1.0):
        mean = sum(
            chance * timeline(coins, share, lookahead, **rules)
            for coins, chance in weights(alpha, 7)
        )
        assert dsi_time(
            share, alpha, lookahead, 8, replace(LISTING, **rules)
        ) == pytest.approx(mean), alpha


def test_proposition_1_at_its_ends_and_by_hand():
    assert accounting.dsi_bound(0.5, 0.5, 50) == 37.75  # 0.5 * 0.5 * 49 + 0.5 * 49 + 1
    assert accounting.dsi_bound(0.1, 0.0, 50) == 50
    assert accounting.dsi_bound(0.1, 1.0, 50) == pytest.approx(4.9 + 1)
    assert (accounting.dsi_bound(1.0, ALPHAS, 50) == 50).all()


def test_proposition_1_is_the_time_at_lookahead_1_and_nothing_longer_beats_it():
    share, bound = (
        SHARES[::9, None],
        accounting.dsi_bound(SHARES[::9, None], ALPHAS, 50),
    )
    assert dsi_time(share, ALPHAS, 1, 50) == pytest.approx(bound)
    for lookahead in (2, 5, 20):
        assert (dsi_time(share, ALPHAS, lookahead, 50) > bound - 1e-9).all()


def test_theorems_hold_in_expectation_and_the_first_needs_the_server_beside():
    share = SHARES[:, None]
    for lookahead in (1, 5):
        dsi = dsi_time(share, ALPHAS, lookahead, 50)
        assert (dsi <= 50 + 1e-9).all()
        assert (dsi <= si_time(share, ALPHAS, lookahead, 50) + 1e-9).all()
    assert dsi_time(1.0, 0.42, 5, 50, replace(LISTING, beside=False)) > 80


# -- one rule at a time --------------------------------------------------------------------------
def published(share, alpha, lookahead, kind, rng, tokens=50, longest=20):
    """One run of the published simulator: its control flow, on a clock of numbers."""
    clock, total = 0.0, 0
    while True:
        correct = min(
            next(i for i in itertools.count() if rng.random() >= alpha), longest
        )
        drafting = 0.0  # when the drafter is where it is
        for draft_tokens in itertools.count(0, lookahead):
            if draft_tokens:
                drafting += lookahead * share
            returned = drafting + 1
            if kind == "si":
                drafting += 1  # SI drafts on after the call
            if correct < draft_tokens or total + correct > tokens:
                break
        clock += returned
        if correct >= draft_tokens:
            return clock
        total += correct


@pytest.mark.parametrize(
    "share, alpha", [(2.5 / 37.7, 0.63), (6.8 / 20.6, 0.93), (0.66, 0.87)]
)
@pytest.mark.parametrize("lookahead", [1, 5, 10])
def test_the_simulators_books_are_its_control_flow(share, alpha, lookahead):
    for kind, formula in (("si", si_time), ("dsi", dsi_time)):
        rng = random.Random(11)
        runs = [published(share, alpha, lookahead, kind, rng) for _ in range(2000)]
        assert within(runs, formula(share, alpha, lookahead, 50, SIMULATOR)), kind


def test_each_rule_by_hand():
    """Two tokens, lookahead 1, half the drafts right: a round of 1.5 or, for half, a second."""

    def si(**rule):
        return float(si_time(0.5, 0.5, 1, 2, replace(LISTING, **rule)))

    def dsi(alpha, lookahead, tokens, **rule):
        return float(dsi_time(0.25, alpha, lookahead, tokens, replace(LISTING, **rule)))

    assert si() == 1.5 + 0.75
    assert si(restart_pass=True) == 2.5 + 1.25  # a pass more for each of them
    assert si(corrected=False) == 3.0  # both at once, or nothing, again
    assert si(bonus=False) == 3.0  # a round gives one, right or wrong
    assert si(unverified_end=True) == 2.25 + 0.75 / 2  # 1, 1 is not above 2: once more
    assert dsi(0.0, 2, 3) == 3
    assert dsi(0.0, 2, 3, late=True, beside=False) == 1.5 + 1.25 + 1
    assert dsi(0.5, 1, 1, unverified_end=True) == 0.5 * 1 + 0.5 * 2
    assert dsi(0.5, 1, 3) == 3 - 0.5 * 0.75 * 2
    # no two right in a row: the first wrong, then as for 2; or the second wrong, then the last
    assert dsi(0.5, 1, 3, longest=1) == 0.5 * (1 + 1.625) + 0.5 * (1.25 + 1)


def test_every_rule_is_switched_once_and_alone():
    found = switched(LISTING, SIMULATOR)
    assert set(found) == set(vars(LISTING))
    for rule, books in found.items():
        assert switched(LISTING, books) == {rule: books}


def test_servers_needed_are_the_texts():
    assert accounting.servers_needed(0.1429, 1) == 7  # section 5: 14.29 %
    assert accounting.servers_needed(0.1 / 4.9, 1) == 49  # though 4.9 / 0.1 is more
    assert accounting.servers_needed([2.5 / 37.7, 6.8 / 20.6], 1).tolist() == [16, 4]


def test_the_speed_up_takes_each_side_at_its_best_within_the_servers():
    share, alpha = np.array([2.5 / 37.7, 6.8 / 20.6]), np.array([0.63, 0.93])
    free = accounting.speedup(share, alpha)
    si = np.minimum.reduce([si_time(share, alpha, k, 50) for k in (1, 5, 10)])
    assert free == pytest.approx(si / accounting.dsi_bound(share, alpha, 50))
    seven = accounting.speedup(share, alpha, rules=replace(LISTING, most_servers=7))
    assert seven[1] == free[1]  # 4 servers are enough for it
    assert seven[0] == pytest.approx(
        si[0] / min(dsi_time(share, alpha, k, 50)[0] for k in (5, 10))
    )


def test_what_has_no_answer_says_so():
    with pytest.raises(SpeclibError, match="alpha is 0 and corrected is False"):
        si_time(0.1, ALPHAS, 5, 50, SIMULATOR)
    with pytest.raises(
        SpeclibError, match=r"no lookahead of \[1\] needs at most 7 servers"
    ):
        accounting.speedup(0.05, 0.5, rules=SIMULATOR, lookaheads=[1])


# -- the figures ---------------------------------------------------------------------------------
def test_figure_1_in_expectation_at_its_corners():
    found = heatmaps(repeats=None)
    assert {panel.shape for panel in found.panels.values()} == {(100, 101)}
    cells = found.cells()
    assert (
        cells["(a) SI vs. non-SI", "smallest"] == 0.5
    )  # a round of 1 + 1 for each token
    assert cells["(a) SI vs. non-SI", "largest"] == pytest.approx(
        50 / 1.49
    )  # 49 drafts, a pass
    assert cells["(c) DSI vs. non-SI", "largest"] == pytest.approx(50 / 1.49)
    assert cells["(b) DSI vs. SI", "largest"] == 2.0
    assert [cells[name, "smallest"] for name in found.panels][1:] == [1, 1, 1]
    assert (
        cells["(a) SI vs. non-SI", "gains with acceptance below drafter latency"] == 0
    )
    assert (
        cells["(c) DSI vs. non-SI", "smallest where SI loses"] == 1
    )  # with no draft right


def test_figure_6_in_expectation_at_its_corners():
    cells = heatmaps((5,), repeats=None).cells()
    assert cells["(a) SI vs. non-SI", "smallest"] == pytest.approx(1 / 6)
    assert cells["(a) SI vs. non-SI", "largest"] == pytest.approx(50 / (9 * 1.05))
    longer = heatmaps((5,), repeats=None, dsi_lookahead=5).cells()
    assert longer["(c) DSI vs. non-SI", "smallest"] == 1
    assert longer["(b) DSI vs. SI", "smallest"] < cells["(b) DSI vs. SI", "smallest"]


def test_panels_divide_the_times_cell_by_cell():
    shares, alphas = np.array([0.1, 0.8]), np.array([0.0, 0.5, 1.0])
    found = heatmaps((1, 4), tokens=9, repeats=None, shares=shares, alphas=alphas)
    for (i, share), (j, alpha) in itertools.product(
        enumerate(shares), enumerate(alphas)
    ):
        si = min(float(si_time(share, alpha, k, 9)) for k in (1, 4))
        dsi = share * alpha * 8 + (1 - alpha) * 8 + 1
        assert [panel[i, j] for panel in found.panels.values()] == pytest.approx(
            [9 / si, si / dsi, 9 / dsi, min(si, 9) / dsi]
        )


def test_the_best_of_many_means_of_five_is_too_fast():
    """As printed, SI looks faster than it is; with many repeats it does not."""
    grid = {"shares": SHARES[9:40:10], "alphas": ALPHAS[60:100:10]}
    exact = heatmaps(repeats=None, **grid).si
    ratio = heatmaps(repeats=5, **grid).si / exact
    assert ratio.mean() < 0.97 and ratio.min() < 0.9
    assert heatmaps(LOOKAHEADS[:12], repeats=3000, **grid).si == pytest.approx(
        exact, rel=0.02
    )
