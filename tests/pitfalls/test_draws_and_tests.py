"""Pitfalls of sampling: how drafts are drawn, tested and replaced.

The numbers come from the public threads that each test names, which docs/pitfalls.md
summarises. Expected values come from the target's row and arithmetic.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from speclib import METHODS, check, draw
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.methods import about, takes_gamma
from speclib.models.toy import Uncached
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import outcomes
from speclib.worlds.virtual import Virtual


class Fixed(Uncached):
    """A model with the same distribution after every text."""

    def __init__(self, *row: float):
        self.row = np.array(row)
        self.vocab = len(row)
        self.reset()

    def rows(self, text, last, sampler):
        self._feed(text, last)
        with np.errstate(divide="ignore"):
            return sampler(np.log(np.tile(self.row, (last + 1, 1))))

    def chances(self):
        return self.row


def settings_of(method: str) -> dict:
    """Returns the method's first variant, with windows of two tokens."""
    settings = dict(about(method).variants[0])
    if takes_gamma(method):
        settings["gamma"] = 2
    return settings


# -- drafts not drawn from the q they are tested with ----------------------------------
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "draft, target, tokens",
    [
        ((0.8, 0.2), (0.6, 0.4), 2),
        ((0.51, 0.49), (0.51, 0.49), 2),
        ((0.7, 0.2, 0.05, 0.05), (0.6, 0.2, 0.1, 0.1), 1),
    ],
    ids=["transformers 32867", "EAGLE 110", "SGLang 10308"],
)
def test_every_method_keeps_the_targets_distribution_at_the_numbers_of_the_reports(
    method, draft, target, tokens
):
    """Drafts are the likeliest token, but are tested as if they had been drawn.

    https://github.com/huggingface/transformers/issues/32867: 0.75 comes out, not 0.6.
    https://github.com/SafeAILab/EAGLE/issues/110: is 0.49 still reached?
    https://github.com/sgl-project/sglang/issues/10308: a draft tested as if certain.
    """
    models = {"draft": Fixed(*draft), "target": Fixed(*target)}
    chance_of = outcomes(METHODS[method], models, tokens, **settings_of(method))
    for text in product(range(len(target)), repeat=tokens):
        expected = np.prod([target[token] for token in text])
        assert chance_of[text] == pytest.approx(expected, abs=1e-12), text


@pytest.mark.parametrize(
    "method, settings, rate",
    [
        ("speculative", {}, 0.6 + 0.2 + 0.05 + 0.05),  # drawn: the sum of min(p, q)
        ("eagle", {"width": 1, "budget": 1}, 0.6),  # the likeliest token: its p
    ],
)
def test_a_draft_that_is_drawn_passes_more_often_than_the_likeliest_token(
    method, settings, rate
):
    """https://github.com/sgl-project/sglang/issues/10308, with its own numbers.

    https://github.com/vllm-project/vllm/pull/16899 also reports lower acceptance for
    the likeliest token.
    """
    models = {"draft": Fixed(0.7, 0.2, 0.05, 0.05), "target": Fixed(0.6, 0.2, 0.1, 0.1)}
    world = Virtual(models, Latency.ratio(5))
    world.begin((0,), sampler=Sampler(1.0), coins=Coins(3), limit=2000)
    METHODS[method](world, gamma=1, **settings)
    counts = stats(world.end())
    tested = counts.accepted + counts.rejected
    standard_error = (rate * (1 - rate) / tested) ** 0.5
    assert counts.acceptance_rate == pytest.approx(rate, abs=4 * standard_error)


# -- rules -----------------------------------------------------------------------------
def ratio_test(drafted, q, p, coin, row_of_test=0):
    """Leviathan et al. 2023, Algorithm 1; ``row_of_test`` shifts the row of p."""
    for position, token in enumerate(drafted):
        row = p[position + row_of_test]
        if coin() < row[token] / q[position][token]:
            continue
        left = np.maximum(row - q[position], 0)
        left = left / left.sum() if left.sum() > 0 else row
        return [*drafted[:position], draw(left, coin())]
    return [*drafted, draw(p[-1], coin())]


def test_a_likeliest_token_that_is_tested_as_if_drawn_is_found():
    """https://github.com/huggingface/transformers/issues/32867, with its own numbers.

    For q = (0.8, 0.2) and p = (0.6, 0.4), 0 is kept with probability 0.6 / 0.8, and 1
    replaces it.
    """
    answer = check(ratio_test, drawn="argmax")
    assert answer.is_lossless is False
    assert "q = (0.8, 0.2) and p = (0.6, 0.4)" in answer.problem
    assert "with probability 0.7500; the target model says 0.6000" in answer.problem
    assert check(ratio_test)


def test_a_rule_that_is_not_given_q_is_lossless_and_keeps_fewer_drafts():
    """https://github.com/vllm-project/vllm/issues/40149: no q reaches the test.

    A draft passes with probability p(x), and p without x replaces it. So for any q, y
    is written with probability q(y) p(y) + (1 - q(y)) p(y) = p(y).
    """

    def without_q(drafted, q, p, coin):
        for position, token in enumerate(drafted):
            if coin() < p[position][token]:
                continue
            others = np.array(p[position])
            others[token] = 0
            return [*drafted[:position], draw(others / others.sum(), coin())]
        return [*drafted, draw(p[-1], coin())]

    answer = check(without_q)
    assert answer, answer
    assert answer.rate.value < answer.rate.best["token by token"] - 0.1


def test_a_q_that_is_not_the_one_drafts_were_drawn_from_is_found():
    """https://github.com/huggingface/transformers/issues/47932: q before its sampler.

    Here the sampler is a temperature of 0.5, so q without it has square roots.
    """

    def raw_q(drafted, q, p, coin):
        raw = [np.sqrt(row) / np.sqrt(row).sum() for row in q]
        return ratio_test(drafted, raw, p, coin)

    answer = check(raw_q)
    assert answer.is_lossless is False
    assert answer.largest_error > 0.1


def test_a_q_that_is_rounded_to_bfloat16_loses_a_little_and_that_is_found():
    """https://github.com/deepseek-ai/DeepSpec/issues/31: drafts are drawn in one number
    format and tested in another.

    bfloat16 has eight bits, so a probability changes by at most 2 ** -9 of itself.
    """
    torch = pytest.importorskip("torch")

    def rounded(row):
        return torch.tensor(row).to(torch.bfloat16).double().numpy()

    def two_types(drafted, q, p, coin):
        return ratio_test(drafted, [rounded(row) for row in q], p, coin)

    answer = check(two_types)
    assert answer.is_lossless is False
    assert 1e-5 < answer.largest_error < 2 * 2**-9


def test_drafts_that_are_all_accepted_are_named():
    """https://github.com/huggingface/transformers/pull/28508: the count of matches."""

    def accepts_all(drafted, q, p, coin):
        return [*drafted, draw(p[-1], coin())]

    answer = check(accepts_all)
    assert answer.mistake == "untested drafts"
    assert answer.rate.value > answer.rate.best["by whole blocks"]


def test_a_row_of_the_target_that_is_one_too_late_is_named():
    """https://github.com/feifeibear/LLMSpeculativeSampling/issues/29 asks which row of
    p belongs to which position."""
    answer = check(lambda drafted, q, p, coin: ratio_test(drafted, q, p, coin, 1))
    assert answer.mistake == "row off by one"


def test_the_likeliest_tokens_of_two_soft_distributions_are_no_greedy_decoding():
    """https://github.com/jaymody/speculative-sampling/issues/9, with its own numbers.

    The draft's likeliest token is 0, with 0.2. The target gives it 0.3, and 0.5 to
    token 1. By the ratio test, 0 always passes, although greedy decoding writes 1.
    """
    models = {
        "draft": Fixed(0.2, 0.16, 0.16, 0.16, 0.16, 0.16),
        "target": Fixed(0.3, 0.5, 0.05, 0.05, 0.05, 0.05),
    }
    world = Virtual(models, Latency.ratio(5))
    for method in METHODS:
        world.begin((0,), sampler=Sampler(0.0), coins=Coins(), limit=5)
        METHODS[method](world, **settings_of(method))
        assert world.text[1:] == (1,) * 5, method
        world.end()
