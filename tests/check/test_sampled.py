"""Sampled answers: false alarms are rare, and errors of the stated size are found."""

from __future__ import annotations

import numpy as np
import pytest

from speclab.check.line import TWO_TOKENS, random_line
from speclab.check.sampled import sample


def target_itself(drafted, q, p, coin):
    """Ignores the drafts and draws the target's own token."""
    return [int(coin() >= p[0][0])]


def off_by(error):
    """The same, with one token more probable by ``error``."""

    def rule(drafted, q, p, coin):
        return [int(coin() >= p[0][0] - error)]

    return rule


def test_a_lossless_rule_rarely_raises_an_alarm():
    """Each of 100 alarms with probability at most 1e-4: this fails 1 time in 100."""
    for seed in range(100):
        found = sample(TWO_TOKENS, target_itself, runs=300, seed=seed)
        assert found.difference is None


@pytest.mark.parametrize("runs", [500, 1500])
def test_an_error_of_the_stated_size_is_found(runs):
    """In 95 of 100 checks: fewer than 31 of 40 have a probability below 1e-4."""
    named = sample(TWO_TOKENS, target_itself, runs=runs).would_find
    found = 0
    for seed in range(40):
        answer = sample(TWO_TOKENS, off_by(named), runs=runs, seed=seed)
        found += answer.difference is not None
    assert found >= 31


def test_a_token_that_the_target_never_writes_is_found_at_once():
    case = random_line("sure", 2, 1, seed=1)
    case.target[()][:] = (1.0, 0.0)
    seen = sample(case, lambda *_: [1], runs=100)
    assert "is 0 with frequency 0.0000; the target model says 1.0000" in seen.difference


def test_the_interval_of_the_mean_tokens_contains_the_true_value():
    """TWO_TOKENS: a draft passes with probability 0.5 + 0.2 = 0.7."""

    def rule(drafted, q, p, coin):
        if coin() < p[0][drafted[0]] / q[0][drafted[0]]:
            return [*drafted, int(coin() >= p[1][0])]
        left = np.maximum(p[0] - q[0], 0)
        return [int(left.argmax())]

    seen = sample(TWO_TOKENS, rule, runs=4000)
    assert seen.difference is None
    assert abs(seen.tokens - 1.7) < 2 * seen.tokens_off
