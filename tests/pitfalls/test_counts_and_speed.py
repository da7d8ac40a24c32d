"""Pitfalls of numbers: acceptance rates that mislead, and drafts that do not pay.

Expected values are arithmetic. docs/pitfalls.md summarises the threads named here.
"""

from __future__ import annotations

import pytest

from speclab import acceptance, acceptance_of_log
from speclib import METHODS, simulate, simulate_batch
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.models.toy import Toy
from speclib.trace.metrics import stats
from speclib.worlds.virtual import Virtual

TOYS = {"draft": 1.0, "target": None}  # a draft that is always right
WORDS = " ".join(f"w{number}" for number in range(40))


def tokens_a_pass(alpha: float, gamma: int) -> float:
    """Returns Leviathan et al. 2023, equation (1): accepted drafts plus one token."""
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


# -- acceptance rates ------------------------------------------------------------------
def test_accepted_over_drafted_is_not_the_chance_of_a_draft():
    """https://github.com/ggml-org/llama.cpp/issues/3649: of 8 drafts, each accepted
    with probability 0.8 if tested, 3.33 are accepted, or 42 %.
    """
    expected = sum(0.8**place for place in range(1, 9))
    assert expected == pytest.approx(3.33, abs=0.01)

    run = simulate("speculative", gamma=8, c=5, alpha=0.8, tokens=4000, text=WORDS)
    counts = acceptance(run)
    assert counts.rate == pytest.approx(expected / 8, abs=0.02)
    assert counts.conditional[0] == pytest.approx(0.8, abs=0.03)


def test_the_mean_length_has_the_targets_own_token_and_the_mean_accepted_has_not():
    """https://github.com/SafeAILab/EAGLE/issues/169 and 195 ask which of the two a
    paper prints; the difference of one is no improvement.
    """
    run = simulate("speculative", gamma=5, c=5, alpha=0.7, tokens=4000, text=WORDS)
    expected = tokens_a_pass(0.7, 5)
    assert run.stats.tokens_per_target_run == pytest.approx(expected, abs=0.05)
    assert run.stats.mat == pytest.approx(expected - 1, abs=0.05)
    assert acceptance(run).mean_length == pytest.approx(expected, abs=0.05)


def test_drafts_behind_an_end_token_are_not_counted_as_written():
    """https://github.com/vllm-project/vllm/issues/56101: the third of five right drafts
    ends the text, so three tokens are committed, but the reported mean length is six.
    """
    words = tuple(range(1, 41))
    models = {role: Toy(rate, 50, 0, words) for role, rate in TOYS.items()}
    world = Virtual(models, Latency.ratio(5))
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=30, eos=(words[2],))
    METHODS["speculative"](world, gamma=5)
    trace = world.end()
    assert world.text[1:] == words[:3]
    assert acceptance(trace).mean_length == 3
    assert acceptance(trace).conditional[:3] == (1, 1, 1)
    assert stats(trace).acceptance_rate == 1


def test_all_intervals_of_a_log_count_by_their_drafts():
    """https://github.com/sgl-project/sglang-jax/pull/1586: the accept length is only in
    log lines, each of which covers a single interval.

    vLLM has such lines too. Here the last one covers a window with all drafts rejected.
    """
    line = (
        "SpecDecoding metrics: Mean acceptance length: 2.55, Accepted: {} tokens, "
        "Drafted: {} tokens, Per-position acceptance rate: {}, "
        "Avg Draft acceptance rate: 50%\n"
    )
    usual = line.format(400, 774, "0.800, 0.500, 0.250")
    last = line.format(0, 3, "0.000, 0.000, 0.000")
    windows = 100 * 774 / 3
    expected = (0.8 * windows / (windows + 1), 0.5 / 0.8, 0.25 / 0.5)
    assert acceptance_of_log(100 * usual + last) == pytest.approx(expected)


def test_a_rate_of_nearly_1_may_come_from_drafting_hardly_at_all():
    """https://github.com/ggml-org/llama.cpp/issues/3919: the rate is 100 %, but nothing
    is faster, because only nearly certain tokens are drafted.
    """
    how = dict(c=5, alpha=0.7, doubt=0.5, tokens=2000, text=WORDS)
    choosy = simulate("assisted", confidence_threshold=0.999, **how).stats
    usual = simulate("assisted", confidence_threshold=0.5, **how).stats
    assert choosy.drafts_used > usual.drafts_used
    assert choosy.tokens_per_target_run < usual.tokens_per_target_run


def test_more_accepted_tokens_may_go_with_a_smaller_speed_up():
    """https://github.com/hemingkx/Spec-Bench/issues/29: the draft is a compressed copy
    of the target, which is accurate but slow.

    A round takes gamma drafts and a target pass: gamma / c + 1.
    """
    runs = {}
    for c, alpha in ((1.25, 0.95), (10, 0.7)):
        how = dict(c=c, alpha=alpha, tokens=2000, text=WORDS)
        plain = simulate("autoregressive", **how).stats
        run = simulate("speculative", gamma=4, **how).stats
        speedup = run.decode_speed / plain.decode_speed
        expected = tokens_a_pass(alpha, 4) / (4 / c + 1)
        assert speedup == pytest.approx(expected, rel=0.06)
        runs[c] = (run.mat, speedup)
    assert runs[1.25][0] > runs[10][0]
    assert runs[1.25][1] < runs[10][1]


# -- slower than plain decoding --------------------------------------------------------
@pytest.mark.parametrize("gamma", [1, 4, 8])
def test_a_draft_that_is_nearly_as_slow_as_its_target_makes_decoding_slower(gamma):
    """https://github.com/huggingface/transformers/issues/36337: slower with an
    assistant. https://github.com/ggml-org/llama.cpp/issues/10664: slower until the
    draft is on the GPU too.
    """
    how = dict(c=1.1, alpha=0.6, tokens=1500, text=WORDS)
    plain = simulate("autoregressive", **how).stats
    run = simulate("speculative", gamma=gamma, **how).stats
    expected = tokens_a_pass(0.6, gamma) / (gamma / 1.1 + 1)
    assert expected < 1
    assert run.decode_speed / plain.decode_speed == pytest.approx(expected, rel=0.05)


def test_what_pays_for_one_request_does_not_pay_for_many():
    """https://github.com/vllm-project/vllm/issues/17984: slower from 32 requests on.

    https://github.com/sgl-project/sglang/issues/4759: throughput falls. Here each token
    after the first makes a pass 5 % longer.
    """
    latency = Latency.ratio(8, 0.1).lengthened(0.05)
    how = dict(latency=latency, alpha=0.8, tokens=100, text=WORDS)
    gain = {}
    for batch in (1, 32):
        plain = simulate_batch("autoregressive", batch=batch, **how)
        run = simulate_batch("speculative", gamma=4, batch=batch, **how)
        gain[batch] = run.throughput / plain.throughput
    assert gain[1] > 1.5
    assert gain[32] < 1
    # A pass over five tokens of each of 32 requests, compared with one token of each.
    most = tokens_a_pass(0.8, 4) * (1 + 0.05 * 31) / (1 + 0.05 * 159)
    assert gain[32] < most


def test_dsi_with_a_useless_draft_takes_as_long_as_plain_decoding():
    """https://github.com/keyboardAnt/distributed-speculative-inference/issues/37: at an
    acceptance rate of 0.01, 77 tokens take about 7,700 iterations of the simulation.
    """
    how = dict(c=5, alpha=0.01, tokens=77, text=WORDS)
    plain = simulate("autoregressive", **how).stats
    run = simulate("dsi", **how).stats
    assert run.tokens == 77
    assert plain.seconds == pytest.approx(77 * 0.1)
    assert run.seconds == pytest.approx(plain.seconds)
    assert run.rounds == 77
