"""DSI's accounting rules, tested with the printed listing, enumeration and scipy.

Random runs are seeded, so tests are deterministic. They allow 5 standard errors, which
a right formula would exceed for one seed in a million.
"""

from __future__ import annotations

import heapq
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from speclab.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    dsi_bound,
    dsi_time,
    servers_needed,
    si_rounds,
    si_sampled,
    si_time,
    speedup,
    switched,
)
from speclab.theory.dsi_heatmaps import ALPHAS, SHARES
from speclib.errors import SpeclibError

Coins = Sequence[bool]  # whether each draft is right

CountAccepted = Callable[[int], int]  # of a number of drafts


# -- the printed listing, verbatim -----------------------------------------------------
def listing(
    share: float, lookahead: int, tokens: int, get_num_accepted: CountAccepted
) -> float:
    cost = 0.0
    total = 0
    while total < tokens:
        total += get_num_accepted(lookahead) + 1
        cost += lookahead * share + 1
    return cost


def counting_on(coins: Coins) -> CountAccepted:
    """get_num_accepted for a row of coins: the right ones before a wrong one."""
    remaining = iter(coins)

    def get_num_accepted(most: int) -> int:
        for right in range(most):
            if not next(remaining):
                return right
        return most

    return get_num_accepted


def every_row_of_coins(alpha: float, n: int) -> Iterator[tuple[Coins, float]]:
    """Every row of n coins, with its probability."""
    for coins in itertools.product((True, False), repeat=n):
        right = sum(coins)
        yield coins, alpha**right * (1 - alpha) ** (n - right)


def is_mean_of(values: Sequence[float], expected: float) -> bool:
    """Whether the mean is within 5 standard errors of ``expected``."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return abs(statistics.fmean(values) - expected) < 5 * error


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("lookahead", [1, 2, 3, 7])
def test_the_expectation_of_si_is_the_listing_over_every_row_of_coins(alpha, lookahead):
    mean = 0.0
    for coins, chance in every_row_of_coins(alpha, 4 + lookahead):
        mean += chance * listing(0.2, lookahead, 4, counting_on(coins))

    rounds = si_rounds(alpha, lookahead, 4)
    assert rounds * (0.2 * lookahead + 1) == pytest.approx(mean)
    assert si_time(0.2, alpha, lookahead, 4) == pytest.approx(mean)


def test_rounds_by_hand():
    assert si_rounds(0.5, 1, 2) == 1.5  # one, and a second for half of them
    assert si_rounds(0.0, 5, 50) == 50
    assert si_rounds(1.0, 5, 50) == 9  # of 6 tokens
    assert si_rounds(1.0, 200, 50) == 1


def test_a_lookahead_beyond_the_text_needs_a_round_per_wrong_draft():
    """So rounds are 1 + binomial, on average and run by run."""
    rounds = 1 + stats.binom.mean(49, 0.3)
    assert si_rounds(0.7, 60, 50) == pytest.approx(rounds)

    runs = np.full(20_000, 0.01)
    times = si_sampled(runs, 0.7, 60, 50, repeats=1, seed=3)
    sampled_rounds = times / (60 * 0.01 + 1)
    assert is_mean_of(sampled_rounds.tolist(), rounds)

    wrong_drafts = np.rint(sampled_rounds).astype(int) - 1
    frequent = np.arange(8, 23)
    counts = np.bincount(wrong_drafts, minlength=50)[frequent]
    chances = stats.binom.pmf(frequent, 49, 0.3)
    expected_counts = counts.sum() * chances / chances.sum()
    assert stats.chisquare(counts, expected_counts).pvalue > 1e-4


def test_sampling_repeats_by_seed_averages_and_has_the_shape_of_the_grid():
    share = SHARES[:4, None, None]
    alpha = ALPHAS[None, ::25, None]
    lookahead = np.array([1, 5, 10])

    def sample(repeats: int, seed: int) -> np.ndarray:
        return si_sampled(share, alpha, lookahead, 20, repeats=repeats, seed=seed)

    times = sample(repeats=2, seed=4)
    assert times.shape == (4, 5, 3)
    assert (times == sample(repeats=2, seed=4)).all()
    assert (times != sample(repeats=2, seed=5)).any()

    exact = si_rounds(alpha, lookahead, 20) * (lookahead * share + 1)
    assert times[:, 0] == pytest.approx(exact[:, 0])  # no draft right
    assert times[:, 4] == pytest.approx(exact[:, 4])  # all drafts right
    assert sample(repeats=4000, seed=4) == pytest.approx(exact, rel=0.03)


# -- DSI: a timeline of passes, text by text -------------------------------------------
def timeline(
    coins: Coins, share: float, lookahead: int, plain: bool, late: bool
) -> float:
    """Time until len(coins) + 1 tokens are verified.

    Coin i says whether draft i is right, after right text. After each rejection there
    is a pass on every i blocks of drafts, as soon as they are written, and one on the
    last draft. With ``plain`` there is also one on the verified text alone,
    whenever more is verified. A pass adds the target's own token after its drafts; a
    ``late`` pass on blocks does not.
    """
    now = 0.0
    done = 0
    while done < len(coins) + 1:
        remaining = coins[done:]
        seconds, verified = until_rejection(remaining, share, lookahead, plain, late)
        now += seconds
        done += verified
    return now


def until_rejection(
    coins: Coins, share: float, lookahead: int, plain: bool, late: bool
) -> tuple[float, int]:
    """(time, verified tokens) from one rejection to the next."""
    most = len(coins)
    right = counting_on(coins)(most)

    # Each pass: its end, its drafts, whether it gives a token after them.
    passes = [(most * share + 1, most, True)]
    for drafts in range(0, most, lookahead):
        passes.append((drafts * share + 1, drafts, not late))
    if plain:
        passes.append((1.0, 0, True))
    heapq.heapify(passes)

    now = 0.0
    verified = 0
    while verified <= right:
        now, drafts, gives_token = heapq.heappop(passes)
        tokens = min(drafts, right) + (gives_token or right < drafts)
        if tokens > verified:
            verified = tokens
            if plain:
                heapq.heappush(passes, (now + 1, verified, True))
    return now, verified


@pytest.mark.parametrize("share", [0.07, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("lookahead", [1, 2, 3, 5])
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_the_expectation_of_dsi_is_its_timeline_over_every_text(
    share, lookahead, plain, late
):
    rules = replace(LISTING, plain_server=plain, late=late)
    for alpha in (0.0, 0.4, 0.9, 1.0):
        mean = 0.0
        for coins, chance in every_row_of_coins(alpha, 7):
            mean += chance * timeline(coins, share, lookahead, plain, late)

        time = dsi_time(share, alpha, lookahead, 8, rules)
        assert time == pytest.approx(mean), alpha


def test_proposition_1_at_its_ends_and_by_hand():
    assert dsi_bound(0.5, 0.5, 50) == 37.75  # 0.5 * 0.5 * 49 + 0.5 * 49 + 1
    assert dsi_bound(0.1, 0.0, 50) == 50
    assert dsi_bound(0.1, 1.0, 50) == pytest.approx(4.9 + 1)
    assert (dsi_bound(1.0, ALPHAS, 50) == 50).all()


def test_proposition_1_is_the_time_at_lookahead_1_and_nothing_longer_beats_it():
    share = SHARES[::9, None]
    bound = dsi_bound(share, ALPHAS, 50)
    assert dsi_time(share, ALPHAS, 1, 50) == pytest.approx(bound)
    for lookahead in (2, 5, 20):
        assert (dsi_time(share, ALPHAS, lookahead, 50) > bound - 1e-9).all()


def test_theorems_hold_in_expectation_and_the_first_needs_the_plain_server():
    share = SHARES[:, None]
    for lookahead in (1, 5):
        dsi = dsi_time(share, ALPHAS, lookahead, 50)
        assert (dsi <= 50 + 1e-9).all()
        assert (dsi <= si_time(share, ALPHAS, lookahead, 50) + 1e-9).all()
    without_plain_server = replace(LISTING, plain_server=False)
    assert dsi_time(1.0, 0.42, 5, 50, without_plain_server) > 80


# -- one rule at a time ----------------------------------------------------------------
@pytest.mark.parametrize(
    "rule, time",
    [
        ({}, 1.5 + 0.75),
        ({"restart_pass": True}, 2.5 + 1.25),  # one more pass for each of them
        ({"corrected": False}, 3.0),  # both at once, or nothing and again
        ({"bonus": False}, 3.0),  # a round gives one, right or wrong
        ({"unverified_end": True}, 2.25 + 0.75 / 2),  # 1, 1 is not above 2: once more
    ],
)
def test_each_rule_of_si_by_hand(rule, time):
    """Two tokens, lookahead 1, half the drafts right: a round of 1.5 or, for half, a
    second."""
    assert si_time(0.5, 0.5, 1, 2, replace(LISTING, **rule)) == time


@pytest.mark.parametrize(
    "alpha, lookahead, tokens, rule, time",
    [
        (0.0, 2, 3, {}, 3),
        (0.0, 2, 3, {"late": True, "plain_server": False}, 1.5 + 1.25 + 1),
        (0.5, 1, 1, {"unverified_end": True}, 0.5 * 1 + 0.5 * 2),
        (0.5, 1, 3, {}, 3 - 0.5 * 0.75 * 2),
        # No two right in a row: the first wrong, then as for 2; or the second wrong,
        # then the last.
        (0.5, 1, 3, {"longest": 1}, 0.5 * (1 + 1.625) + 0.5 * (1.25 + 1)),
    ],
)
def test_each_rule_of_dsi_by_hand(alpha, lookahead, tokens, rule, time):
    """At a share of 1/4."""
    rules = replace(LISTING, **rule)
    assert dsi_time(0.25, alpha, lookahead, tokens, rules) == time


def test_every_rule_is_switched_once_and_separately():
    by_rule = switched(LISTING, SIMULATOR)
    assert set(by_rule) == set(vars(LISTING))
    for rule, rules in by_rule.items():
        assert switched(LISTING, rules) == {rule: rules}


def test_servers_needed_are_the_ones_that_the_text_prints():
    assert servers_needed(0.1429, 1) == 7  # section 5: 14.29 %
    assert servers_needed(0.1 / 4.9, 1) == 49  # though 4.9 / 0.1 is more
    shares = [2.5 / 37.7, 6.8 / 20.6]
    assert servers_needed(shares, 1).tolist() == [16, 4]


def test_the_speed_up_takes_each_side_at_its_best_within_the_servers():
    share = np.array([2.5 / 37.7, 6.8 / 20.6])
    alpha = np.array([0.63, 0.93])
    si = np.min([si_time(share, alpha, k, 50) for k in (1, 5, 10)], axis=0)

    any_servers = speedup(share, alpha)
    assert any_servers == pytest.approx(si / dsi_bound(share, alpha, 50))

    seven_servers = speedup(share, alpha, rules=replace(LISTING, most_servers=7))
    dsi = np.min([dsi_time(share, alpha, k, 50) for k in (5, 10)], axis=0)
    assert seven_servers[0] == pytest.approx(si[0] / dsi[0])
    assert seven_servers[1] == any_servers[1]  # 4 servers are enough for it


def test_a_question_without_an_answer_is_refused():
    with pytest.raises(SpeclibError, match="alpha is 0 and corrected is False"):
        si_time(0.1, ALPHAS, 5, 50, SIMULATOR)
    says = r"no lookahead of \[1\] needs at most 7 servers"
    with pytest.raises(SpeclibError, match=says):
        speedup(0.05, 0.5, rules=SIMULATOR, lookaheads=[1])
