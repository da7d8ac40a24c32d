"""Exact enumeration: every method has the target's distribution; bugs are found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from speclab.mutants import pearl_with_an_untested_first_draft
from speclab.mutants.draft_tests import row_off_by_one, speculative_with
from speclab.mutants.other_tosses import OtherTosses
from speclib.core.sampling import Coins, Sampler, ids, residual
from speclib.core.verification import Verified, verify
from speclib.methods import METHODS
from speclib.methods.speculative import speculative
from speclib.models.toy import Random
from speclib.worlds import enumerator as exact
from speclib.worlds.enumerator import Intervals, distance, outcomes, truth

EXACT, FOUND = 1e-12, 1e-3


def models(vocab: int, end: int | None, seed: int = 0) -> dict:
    """Unrelated draft and target; after ``end`` tokens, texts continue with 0."""
    return {
        "draft": Random(vocab, 10 + seed, end),
        "target": Random(vocab, 20 + seed, end),
    }


def error(
    method,
    vocab: int,
    tokens: int,
    *,
    horizon: bool = True,
    seed: int = 0,
    sampler=None,
    eos=frozenset(),
    **settings,
) -> float:
    """Returns the distance between ``method``'s distribution and the target's."""
    end = 1 + tokens if horizon else None
    pair = models(vocab, end, seed)
    of_method = outcomes(method, pair, tokens, sampler=sampler, eos=eos, **settings)
    assert sum(of_method.values()) == pytest.approx(1, abs=EXACT)
    of_target = truth(pair["target"], tokens, sampler=sampler, eos=eos)
    return distance(of_method, of_target)


# -- the target's distribution ---------------------------------------------------------
def test_the_target_distribution_sums_to_one_and_is_the_product_of_the_rows():
    target, sampler = Random(3, 4), Sampler(1.0)
    probability_of = truth(target, 3)
    assert sum(probability_of.values()) == pytest.approx(1, abs=EXACT)
    assert len(probability_of) == 27

    for output in product(range(3), repeat=3):
        rows = target.rows((0, *output[:2]), 2, sampler)
        product_of_rows = np.prod(rows[range(3), output])
        assert probability_of[output] == pytest.approx(product_of_rows, abs=EXACT)


def test_the_target_distribution_stops_at_eos_and_only_there():
    target = Random(3, 4)
    probability_of = truth(target, 3, eos=frozenset({2}))
    assert sum(probability_of.values()) == pytest.approx(1, abs=EXACT)
    for output in probability_of:
        assert len(output) == 3 or output[-1] == 2
        assert 2 not in output[:-1]

    first_row = target.rows((0,), 0, Sampler(1.0))[0]
    assert probability_of[2,] == pytest.approx(first_row[2], abs=EXACT)


def test_the_enumerator_agrees_with_sampling():
    """In 4,000 real runs, every frequency is within 4.5 standard errors.

    Another seed would fail with a probability of about 1 in 10,000.
    """
    pair = models(2, None)
    runs = 4000
    counts: Counter[tuple[int, ...]] = Counter()
    world = exact.Virtual(pair, exact.Latency.ratio(2))
    for seed in range(runs):
        world.begin((0,), sampler=Sampler(1.0), coins=Coins(seed), limit=3)
        speculative(world, 2)
        counts[world.text[1:]] += 1

    for output, probability in outcomes(speculative, pair, 3, gamma=2).items():
        standard_error = (runs * probability * (1 - probability)) ** 0.5
        assert abs(counts[output] - runs * probability) < 4.5 * standard_error


# -- losslessness ----------------------------------------------------------------------
@pytest.mark.parametrize(
    "gammas", [(1, 2), pytest.param((3,), marks=pytest.mark.thorough)], ids=str
)
def test_three_tokens_of_three_kinds_have_the_targets_distribution(case, gammas):
    for settings in case.at(*gammas):
        assert error(case.method, 3, 3, **settings) < EXACT, settings


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [4, pytest.param(5, marks=pytest.mark.thorough)])
def test_longer_outputs_of_two_kinds_have_the_targets_distribution(main_case, tokens):
    for settings in main_case.at(1, 2, 3):
        found = error(main_case.method, 2, tokens, seed=tokens, **settings)
        assert found < EXACT, settings


SLOW = pytest.mark.thorough


@pytest.mark.parametrize(
    "sampler, kinds",
    [
        (Sampler(0.0), 3),
        (Sampler(0.5), 2),  # two kinds are enough for a temperature
        pytest.param(Sampler(0.5), 3, marks=SLOW),
        pytest.param(Sampler(3.0), 3, marks=SLOW),
        pytest.param(Sampler(1.5, 2), 3, marks=SLOW),
        pytest.param(Sampler(1.0, 0, 0.8), 3, marks=SLOW),
        (Sampler(0.7, 2, 0.9), 3),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "gammas, seeds",
    [((2,), (0,)), pytest.param((1, 2), (0, 1, 2), marks=SLOW)],
    ids=["some", "all"],
)
def test_samplers_shape_both_distributions_and_lose_nothing(
    case, sampler, kinds, gammas, seeds
):
    for settings in case.at(*gammas):
        for seed in seeds:
            found = error(case.method, kinds, 3, seed=seed, sampler=sampler, **settings)
            assert found < EXACT


@pytest.mark.parametrize("eos", [1, pytest.param(0, marks=pytest.mark.thorough)])
def test_an_end_token_cuts_as_it_does_in_plain_decoding(case, eos):
    for settings in case.at(1, 2, 3):
        assert error(case.method, 2, 4, eos=frozenset({eos}), **settings) < EXACT, (
            settings
        )


def test_the_first_of_two_end_tokens_cuts_as_it_does_in_plain_decoding(main_case):
    for settings in main_case.at(2):
        assert error(main_case.method, 3, 3, eos=(2, 0), **settings) < EXACT, settings


@pytest.mark.parametrize(
    "draft_rows, tokens", [(2, 3), (5, 2), pytest.param(5, 3, marks=SLOW)]
)
def test_a_draft_with_fewer_or_more_rows_than_its_target_loses_nothing(
    case, draft_rows, tokens
):
    """The prompt has a token that a draft with two rows lacks."""
    prompt = (0, 2)
    horizon = len(prompt) + tokens
    pair = {
        "draft": Random(3, 10, horizon, own_rows=draft_rows),
        "target": Random(3, 20, horizon),
    }
    expected = truth(pair["target"], tokens, prompt=prompt)
    for settings in case.at(2):
        found = outcomes(case.method, pair, tokens, prompt=prompt, **settings)
        assert distance(found, expected) < EXACT, settings


def test_a_random_model_gives_probability_0_to_tokens_without_a_row():
    (narrow,) = Random(3, 7, own_rows=2).rows((0, 2), 0, Sampler(1.0))
    (same,) = Random(3, 7, own_rows=2).rows((0, 0), 0, Sampler(1.0))
    assert narrow[2] == 0
    assert narrow.sum() == pytest.approx(1, abs=EXACT)
    assert narrow.tolist() == same.tolist()  # token 0 replaces token 2 as its input
    (wide,) = Random(3, 7, own_rows=5).rows((0,), 0, Sampler(1.0))
    assert wide.shape == (3,)
    assert wide.sum() == pytest.approx(1, abs=EXACT)


@pytest.mark.parametrize("tokens", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_drafting_beyond_the_end_of_the_output_changes_nothing(case, tokens):
    for settings in case.at(1, 2):
        found = error(case.method, 2, tokens, horizon=False, **settings)
        assert found < EXACT, settings


def test_float32_distributions_differ_only_by_rounding(case):
    class Float32(Random):
        def rows(self, text, last, sampler):
            return super().rows(text, last, sampler).astype(np.float32)

    pair = {"draft": Float32(3, 1, 3), "target": Float32(3, 2, 3)}
    expected = truth(pair["target"], 2)
    for settings in case.at(2):
        found = outcomes(case.method, pair, 2, **settings)
        assert distance(found, expected) < 1e-6


# -- planted bugs ----------------------------------------------------------------------
def collide(toss):
    """Gives every even position the accept coin of the position before.

    This is the seed collision in PEARL's published code, where d2 repeats d1's.
    """
    if toss.role == "accept" and toss.position % 2 == 0:
        return replace(toss, position=toss.position - 1)
    return toss


def one_for_two_roles(toss):
    """Draws the replacement with the same coin that rejected."""
    return replace(toss, role="accept" if toss.role == "residual" else toss.role)


class Afresh(Intervals):
    """An enumerator that forgets its coins: every call branches again."""

    def choose(self, dist, position, role, index=0):
        return super().choose(dist, position, role, len(self.held))


def with_coins(world, other, run, **settings):
    world.coins = OtherTosses(world.coins, other)
    run(world, **settings)


def bonus_from_the_wrong_row(world, draft, rows):
    return verify(world, draft, np.concatenate([rows[:-1], rows[-2:-1]]))


def residual_ignored(world, draft, rows):
    """Draws replacements from p itself, not from the residual."""
    verdict = verify(world, draft, rows)
    n = len(verdict.accepted)
    if n == len(draft):
        return verdict
    return Verified(
        verdict.accepted, (world.coins.choose(rows[n], len(world.text) + n, "target"),)
    )


def stale_q(world, draft, rows):
    """Tests each token with the q of the token before."""
    accepted = ()
    for i, (d, p) in enumerate(zip(draft, rows, strict=False)):
        q, position = draft[max(0, i - 1)].q, len(world.text) + i
        chance = min(1.0, p[d.token] / q[d.token]) if q[d.token] else 1.0
        if world.coins.choose(np.array((1 - chance, chance)), position, "accept") == 0:
            choice = world.coins.choose(residual(p, d.q), position, "residual")
            return Verified(accepted, (choice,))
        accepted += (d.token,)
    return Verified(
        accepted, (world.coins.choose(rows[-1], len(world.text) + i + 1, "target"),)
    )


@pytest.mark.parametrize(
    "bug", [bonus_from_the_wrong_row, residual_ignored, stale_q, row_off_by_one]
)
def test_a_planted_bug_in_verification_is_found(bug):
    assert error(speculative_with(verify), 3, 3, gamma=2) < EXACT
    assert error(speculative_with(bug), 3, 3, gamma=2) > FOUND


def test_an_untested_first_token_is_found():
    assert error(pearl_with_an_untested_first_draft, 2, 4, gamma=2) > FOUND


def test_a_coin_for_two_roles_is_found():
    settings = {"other": one_for_two_roles, "run": speculative, "gamma": 2}
    assert error(with_coins, 3, 3, **settings) > FOUND


@pytest.mark.parametrize("name", ["speculative", "pearl"])
def test_a_reused_coin_is_found_and_would_be_missed_by_branching_afresh(
    name, monkeypatch
):
    """Positions 1 and 2 share a coin, as do 3 and 4; the published bug cost 0.041."""
    settings = {"other": collide, "run": METHODS[name], "gamma": 3}
    assert error(with_coins, 2, 4, **settings) > FOUND
    monkeypatch.setattr(exact, "Intervals", Afresh)
    assert error(with_coins, 2, 4, **settings) < EXACT


# -- methods that leave work in flight -------------------------------------------------
def eager(world, gamma):
    """Speculative decoding that drafts the next block before it verifies this one."""
    draft = world.wait(world.draft.propose(world.text, gamma))
    while world.going:
        ahead = world.draft.propose(world.text + ids(draft), gamma)
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        verdict = verify(world, draft, rows)
        world.commit(verdict.tokens)
        world.cancel(ahead)
        if world.going:
            draft = world.wait(world.draft.propose(world.text, gamma))


def unfinished(world):
    """Plain decoding that requests one row too many and does not wait for it."""
    while world.going:
        rows = world.wait(world.target.score(world.text))
        world.commit(verify(world, (), rows).tokens)
    world.target.score(world.text)


def test_a_method_that_cancels_work_can_be_enumerated():
    assert error(eager, 2, 3, gamma=2) < EXACT


def test_a_method_that_leaves_work_in_flight_can_be_enumerated():
    assert error(unfinished, 2, 2) < EXACT


def test_beyond_its_horizon_a_random_model_always_writes_token_0():
    rows = Random(3, 0, horizon=2).rows((0, 1, 2), 2, Sampler(1.0))
    assert 0 < rows[0].max() < 1
    assert rows[1:].tolist() == [[1, 0, 0]] * 2


def test_an_output_in_only_one_distribution_counts_as_a_difference():
    one, other = {(1,): 1.0}, {(1,): 0.75, (2,): 0.25}
    half, rest = {(1,): 0.5}, {(1,): 0.5, (2,): 0.5}
    assert distance(one, other) == distance(other, one) == 0.25
    assert distance(half, rest) == distance(rest, half) == 0.5
