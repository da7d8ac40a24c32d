"""Samplers, coins and verification, compared with transformers, scipy and hand sums."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import blake2b
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, kstest

from speclib.core.sampling import (
    LARGE_VOCAB,
    Coins,
    Drafted,
    Sampler,
    invert,
    residual,
)
from speclib.core.verification import Verified, verify

ONE = 1 - 2.0**-53  # the largest possible u


# -- samplers --------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sampler_equals_transformers_temperature_then_top_k_then_top_p(dtype):
    torch = pytest.importorskip("torch")
    warpers = pytest.importorskip("transformers").generation.logits_process
    logits = np.random.default_rng(0).normal(0, 3, (40, 50)).astype(dtype)
    grid = product((0.3, 1.0, 2.5), (0, 1, 7, 50, 99), (0.05, 0.5, 1.0))
    for temperature, top_k, top_p in grid:
        chain = [warpers.TemperatureLogitsWarper(temperature)]
        if top_k:
            chain.append(warpers.TopKLogitsWarper(top_k))
        if top_p < 1:
            chain.append(warpers.TopPLogitsWarper(top_p))

        expected = torch.tensor(logits)
        for warper in chain:
            expected = warper(None, expected)

        have = Sampler(temperature, top_k, top_p)(logits)
        assert have.dtype == logits.dtype
        np.testing.assert_allclose(
            have,
            expected.softmax(-1).numpy(),
            atol=1e-6,
            err_msg=f"{temperature=} {top_k=} {top_p=}",
        )


def test_greedy_rows_are_one_hot_at_the_first_largest_logit():
    logits = np.array([[0.0, 2.0, 1.0], [5.0, -np.inf, 5.0]], np.float32)
    rows = Sampler()(logits)
    assert rows.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert rows.dtype == np.float32


@pytest.mark.parametrize(
    "top_p, kept",
    [
        (0.5, [0, 1, 0]),
        (0.501, [1 / 3, 2 / 3, 0]),
        (0.75, [1 / 3, 2 / 3, 0]),
        (1e-9, [0, 1, 0]),
    ],
)
def test_a_nucleus_has_the_fewest_tokens_that_reach_top_p(top_p, kept):
    logits = np.log(np.array([[0.25, 0.5, 0.25]]))
    np.testing.assert_allclose(Sampler(1.0, 0, top_p)(logits), [kept], atol=1e-15)


def test_banned_tokens_get_probability_0_from_every_sampler():
    logits = np.array([[1.0, -np.inf, 0.5, -np.inf]])
    for sampler in (Sampler(), Sampler(1.0), Sampler(0.7, 3), Sampler(2.0, 0, 0.9)):
        (probabilities,) = sampler(logits)
        assert probabilities[[1, 3]].tolist() == [0, 0]
        assert probabilities.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("temperature", [1e-40, 1e-310])
def test_a_temperature_near_zero_still_gives_a_distribution(temperature):
    logits = np.array([[1.0, 20.0, 3.0]], np.float32)
    assert Sampler(temperature)(logits).tolist() == [[0, 1, 0]]


# -- coins -----------------------------------------------------------------------------
FINE = np.full(4096, 1 / 4096)  # choosing from this reads 12 bits of a coin
EIGHTHS = np.full(8, 1 / 8)


def read(coins: Coins, position: int, role: str, index: int = 0) -> float:
    """Returns a coin's number in [0, 1)."""
    return (coins.choose(FINE, position, role, index) + 0.5) / 4096


def test_coins_are_uniform():
    """Applies the Kolmogorov-Smirnov test to 20,000 coins of a fixed seed.

    1 seed in 1,000 would fail.
    """
    numbers = [read(Coins(1), position, "draft") for position in range(20_000)]
    assert kstest(numbers, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    "coins, shift, role, index",
    [
        (Coins(1, 0), 0, "accept", 0),
        (Coins(1, 0), 0, "residual", 0),
        (Coins(1, 0), 0, "target", 0),
        (Coins(1, 0), 1, "draft", 0),
        (Coins(1, 0), 0, "draft", 1),
        (Coins(1, 1), 0, "draft", 0),
        (Coins(2, 0), 0, "draft", 0),
    ],
)
def test_coins_whose_keys_differ_in_one_part_are_independent(coins, shift, role, index):
    """Applies the chi-square test to 8 x 8 bins of 5,000 pairs of a fixed seed.

    1 seed in 1,000 would fail.
    """
    first_coins = Coins(1, 0)
    table = np.zeros((8, 8))
    for position in range(5_000):
        row = first_coins.choose(EIGHTHS, position, "draft")
        column = coins.choose(EIGHTHS, position + shift, role, index)
        table[row, column] += 1
    assert chi2_contingency(table).pvalue > 1e-3


def test_a_coin_is_the_hash_of_its_key_and_the_same_in_every_process():
    """It is 53 bits of blake2b("seed,request,position,role,index"), pinned once."""
    digest = blake2b(b"7,3,11,accept,2", digest_size=8).digest()
    first_53_bits = int.from_bytes(digest, "little") >> 11
    u = first_53_bits / 2**53
    token = Coins(7, 3).choose(FINE, 11, "accept", 2)
    assert token == int(u * 4096) == 3363

    code = (
        "import numpy as np; from speclib.core.sampling import Coins; "
        "print(Coins(7, 3).choose(np.full(4096, 1 / 4096), 11, 'accept', 2))"
    )
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )
        assert int(ran.stdout) == token


# -- choosing --------------------------------------------------------------------------
@given(
    st.lists(
        st.sampled_from([0.0, 1e-300, 1e-17, 1e-8, 0.1, 0.3, 1.0]),
        min_size=1,
        max_size=9,
    ).filter(any),
    st.sampled_from([0.0, 2.0**-53, 0.1, 0.5, 1 - 2.0**-30, ONE]),
    st.sampled_from(["float32", "float64"]),
)
def test_a_token_of_probability_0_is_never_chosen(masses, u, dtype):
    dist = np.array(masses, dtype)
    if dist.any():  # float32 may round everything to 0
        dist = dist / dist.sum()
    else:
        dist = np.array([0, 1, 0], dtype)
    assert dist[invert(dist, u)] > 0


@pytest.mark.parametrize("length", [3, LARGE_VOCAB + 1])
def test_inverting_the_smallest_possible_mass_returns_its_token(length):
    """Below 2**-1022, rounding is so coarse that u times the mass equals the mass.

    Any larger mass times the largest u is less than the mass, even in float64.
    """
    dist = np.zeros(length)
    dist[1] = 5e-324
    assert ONE * dist[1] == dist[1]
    assert invert(dist, ONE) == 1


def test_inverting_follows_the_cumulative_sum():
    dist = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    token_at = {0.0: 1, 0.2499: 1, 0.25: 3, 0.7499: 3, 0.75: 4, ONE: 4}
    for u, token in token_at.items():
        assert invert(dist, u) == token


def test_the_residual_is_the_excess_of_p_over_q():
    p = np.array([0.6, 0.1, 0.3])
    q = np.array([0.2, 0.7, 0.1])
    left = [2 / 3, 0, 1 / 3]
    np.testing.assert_allclose(residual(p, q), left, atol=1e-15)

    rounded = residual(p.astype(np.float32), q.astype(np.float32))
    np.testing.assert_allclose(rounded, left, atol=1e-7)


@pytest.mark.parametrize("mass", [1e-6, 1e-9, 2.0**-50])
def test_a_residual_keeps_even_a_tiny_mass(mass):
    """p exceeds q only at token 0, so the replacement is token 0."""
    p = np.array([0.5 + mass, 0.5 - mass])
    assert residual(p, np.array([0.5, 0.5])).tolist() == [1.0, 0.0]


def test_a_residual_that_underflows_is_p():
    p = np.array([0.25, 0.75])
    assert residual(p, p).tolist() == p.tolist()
    assert residual(p, np.array([0.5, 0.75])).tolist() == p.tolist()


# -- large vocabularies ----------------------------------------------------------------
def whole_row_nucleus(row: np.ndarray, top_p: float) -> np.ndarray:
    """Computes the nucleus by definition: sorts the whole row, then sums in order."""
    order = np.lexsort((np.arange(len(row)), -row))
    ranked = row[order]
    mass_before = np.cumsum(ranked) - ranked
    kept = np.zeros_like(row)
    kept[order] = np.where(mass_before < top_p, ranked, 0)
    return kept / kept.sum()


def whole_softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Computes the softmax of all rows at once."""
    scores = (logits - logits.max(-1, keepdims=True)) / logits.dtype.type(temperature)
    probabilities = np.exp(scores)
    return probabilities / probabilities.sum(-1, keepdims=True)


def logits_of_many_kinds(vocab: int) -> dict[str, np.ndarray]:
    """Returns rows of logits, realistic and extreme."""
    random = np.random.default_rng(vocab)
    return {
        "peaked": random.normal(0, 5, vocab),
        "usual": random.normal(0, 2.5, vocab),
        "nearly flat": random.normal(0, 0.1, vocab),
        "all equal": np.zeros(vocab),
        "equal in groups": random.integers(0, 4, vocab).astype(float),
        "largely banned": np.where(np.arange(vocab) % 97, -np.inf, 1.0),
        "one token": np.where(np.arange(vocab) == vocab // 2, 50.0, 0.0),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("vocab", [7, 1000, 40_000])
def test_a_nucleus_equals_that_of_a_full_sort_bit_for_bit(vocab, dtype):
    for kind, logits in logits_of_many_kinds(vocab).items():
        row = logits.astype(dtype)[None]
        probabilities = Sampler(1.0)(row)[0]
        for top_p in (1e-6, 0.1, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
            expected = whole_row_nucleus(probabilities, top_p)
            have = Sampler(1.0, 0, top_p)(row)[0]
            assert have.dtype == expected.dtype
            assert have.tobytes() == expected.tobytes(), (kind, top_p)


def test_among_equally_likely_tokens_the_smallest_ids_are_kept():
    """4,096 tokens have 1/4096 each, so every sum is exact."""
    logits = np.zeros((1, 4096), np.float32)
    for count in (1, 2, 1000, 4095, 4096):
        probabilities = Sampler(1.0, 0, count / 4096)(logits)[0]
        assert np.flatnonzero(probabilities).tolist() == list(range(count))


def test_a_nucleus_is_not_cut_short_by_rounding():
    """The likeliest tokens reach top_p if added in pairs, but not if added one by one.

    So some of the others are kept too.
    """
    tried = 0
    for count in range(20_000, 40_000, 1000):
        logits = np.concatenate([np.zeros(count), np.full(10_000, -5.0)])
        row = logits.astype(np.float32)[None]
        probabilities = Sampler(1.0)(row)[0]
        in_pairs = float(probabilities[:count].sum())
        in_order = float(np.cumsum(probabilities[:count])[-1])
        if in_order < in_pairs:
            top_p = (in_order + in_pairs) / 2
            expected = whole_row_nucleus(probabilities, top_p)
            have = Sampler(1.0, 0, top_p)(row)[0]
            assert have.tobytes() == expected.tobytes()
            assert np.count_nonzero(have) > count
            tried += 1
    assert tried


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 40_000), (50, 3_000), (3, 70_001)])
def test_shaping_rows_in_chunks_equals_shaping_all_at_once(shape, dtype):
    logits = np.random.default_rng(2).normal(0, 3, shape).astype(dtype)
    for temperature in (0.6, 1.0):
        expected = whole_softmax(logits, temperature)
        assert Sampler(temperature)(logits).tobytes() == expected.tobytes()


def test_a_sampler_does_not_modify_the_logits():
    logits = np.random.default_rng(3).normal(0, 3, (3, 500)).astype(np.float32)
    before = logits.copy()
    for sampler in (Sampler(), Sampler(1.0), Sampler(0.7, 20), Sampler(1.0, 0, 0.9)):
        sampler(logits)
        assert logits.tobytes() == before.tobytes()


def first_beyond(cumulative: np.ndarray, u: float) -> int:
    """Returns the first token whose cumulative mass exceeds ``u``, by definition."""
    beyond = np.flatnonzero(cumulative > u * cumulative[-1])
    if not len(beyond):
        beyond = np.flatnonzero(cumulative == cumulative[-1])
    return int(beyond[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_coin_chooses_the_right_token_however_long_the_row_is(dtype):
    """Also on the edge between two tokens, or a rounding error from it."""
    random = np.random.default_rng(4)
    for vocab in (8_191, 8_192, 50_000):
        for kind, logits in logits_of_many_kinds(vocab).items():
            dist = Sampler(1.0)(logits.astype(dtype)[None])[0]
            cumulative = np.cumsum(dist, dtype=np.float64)
            edges = cumulative[random.integers(0, vocab, 20)] / cumulative[-1]
            just_below, just_above = np.nextafter(edges, 0), np.nextafter(edges, 1)
            anywhere = random.random(50)
            for u in (*anywhere, *edges, *just_below, *just_above, 0.0, ONE):
                u = min(float(u), ONE)
                expected = first_beyond(cumulative, u)
                assert invert(dist, u) == expected, (vocab, kind, u)


# -- verification ----------------------------------------------------------------------
class Fixed:
    """A world with given coins, role -> u; records every coin read and every mark."""

    def __init__(self, text=(0,), **u: float):
        self.text = text
        self.u = u
        self.coins = self
        self.read: list[tuple[int, str]] = []  # (position, role) of each coin
        self.marks: list[tuple[int, str]] = []  # (token, outcome)

    def choose(self, dist, position, role, index=0):
        self.read.append((position, role))
        return invert(dist, self.u[role])

    def mark(self, drafted, outcome):
        self.marks.append((drafted.token, outcome))


def drafted(*tokens: int, q=(0.5, 0.5, 0.0)) -> tuple[Drafted, ...]:
    return tuple(Drafted(token, np.array(q)) for token in tokens)


@pytest.mark.parametrize(
    "u, accepted", [(0.0, True), (0.4999, True), (0.5, False), (ONE, False)]
)
def test_a_draft_is_accepted_if_its_coin_is_strictly_below_p_over_q(u, accepted):
    rows = np.array([[0.25, 0.0, 0.75]])  # p/q of token 0 is 1/2
    verified = verify(Fixed(accept=u, residual=0.0), drafted(0), rows)
    expected = Verified((0,), ()) if accepted else Verified((), (2,))
    assert verified == expected


def test_a_token_of_p_0_is_never_accepted_and_one_with_p_above_q_always_is():
    rows = np.array([[0.0, 1.0, 0.0]])
    excluded = verify(Fixed(accept=0.0, residual=0.0), drafted(0), rows)
    assert excluded == Verified((), (1,))
    preferred = verify(Fixed(accept=ONE), drafted(1), rows)
    assert preferred == Verified((1,), ())


def test_the_first_rejected_draft_is_replaced_from_its_own_row_and_ends_the_test():
    world = Fixed((0, 0, 0), accept=0.6, residual=0.0)
    rows = np.array(
        [[0.5, 0.5, 0.0], [0.25, 0.0, 0.75], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    )
    verified = verify(world, drafted(1, 0, 1), rows)

    assert verified == Verified((1,), (2,))
    assert world.read == [(3, "accept"), (4, "accept"), (4, "residual")]
    assert world.marks == [(1, "accepted"), (0, "rejected")]


@pytest.mark.parametrize(
    "rows, extra, read",
    [
        (1, (), [(1, "accept")]),  # there is only one row
        (2, (), [(1, "accept"), (2, "accept")]),  # every row tested a token
        # One row is left for the bonus token.
        (3, (2,), [(1, "accept"), (2, "accept"), (3, "target")]),
    ],
)
def test_a_bonus_token_is_drawn_only_from_a_remaining_row(rows, extra, read):
    world = Fixed(accept=0.0, target=ONE)
    target_rows = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    verified = verify(world, drafted(0, 0), target_rows[:rows])
    assert verified == Verified((0, 0)[:rows], extra)
    assert world.read == read


def test_without_drafts_it_is_plain_decoding_and_without_rows_nothing_is_written():
    world = Fixed(target=0.0)
    assert verify(world, (), np.array([[0.0, 1.0]])).tokens == (1,)
    assert world.read == [(1, "target")]
    assert verify(world, drafted(0), ()) == Verified((), ())
