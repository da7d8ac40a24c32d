"""``check`` always ends soon, and says in words what a rule did wrong."""

from __future__ import annotations

import asyncio
import functools
import sys
import time

import numpy as np
import pytest

from speclib import SpeclibError, check, draw
from speclib.errors import BadCall


def right(drafted, q, p, coin):
    return [draw(p[0], coin())]


# -- what is given back ----------------------------------------------------------------
@pytest.mark.parametrize(
    "given, says",
    [
        (lambda: np.zeros(10**8), "commits 100000000 tokens: one pass decides 2"),
        (lambda: (0 for _ in iter(int, 1)), "one pass decides 2 at most"),
        (lambda: [10**6000], "which is no token here"),
        (lambda: {0}, "returns {0}: return a list of tokens"),
        (lambda: [True], "returns [True]: return a list of tokens"),
        (lambda: [float("nan")], "returns [nan]: return a list of tokens"),
        (lambda: ([0], 1), "returns ([0], 1): return a list of tokens"),
        (lambda: asyncio.sleep(0), "write `def` instead of `async def`"),
    ],
)
def test_anything_but_a_list_of_tokens_is_reported_at_once(given, says):
    began = time.process_time()
    answer = check(lambda drafted, q, p, coin: given())
    assert (answer.is_lossless, answer.how) == (None, "not run")
    assert says in answer.problem
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "given",
    [
        lambda: 10**6000,
        lambda: ["a"] * 10**7,
        lambda: None,
        lambda: float("nan"),
    ],
)
def test_anything_but_a_token_is_reported_at_once(given):
    answer = check(lambda candidates, q, p, coin: given())
    assert (answer.is_lossless, answer.how) == (None, "not run")
    assert "Your function returns" in answer.problem
    assert len(answer.problem) < 300


@pytest.mark.parametrize(
    "given",
    [
        lambda token: np.array([token]),
        lambda token: (float(token),),
        lambda token: (each for each in [token]),
    ],
)
def test_tokens_of_any_kind_are_tokens(given):
    assert check(lambda drafted, q, p, coin: given(draw(p[0], coin())))


# -- what is raised --------------------------------------------------------------------
class OfItsOwn(BaseException):
    pass


def recursive(*arguments):
    return recursive(*arguments)


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(0),
        asyncio.CancelledError(),
        OfItsOwn("x"),
        StopIteration(),
        pytest.fail.Exception("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_reported_with_its_line(error):
    def rule(drafted, q, p, coin):
        raise error

    answer = check(rule)
    assert answer.is_lossless is None
    assert f"{type(error).__name__} in your line `raise error`" in answer.problem
    assert "RecursionError" in check(recursive, "line").problem


def test_the_users_own_interrupt_goes_through():
    def rule(drafted, q, p, coin):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(rule)


@pytest.mark.parametrize("kind", ["partial", "object", "method"])
def test_the_line_is_named_for_every_kind_of_callable(kind):
    class Rule:
        def __call__(self, drafted, q, p, coin):
            return 1 / 0

        def rule(self, drafted, q, p, coin):
            return 1 / 0

    rules = {
        "partial": functools.partial(lambda x, drafted, q, p, coin: 1 / 0, 3),
        "object": Rule(),
        "method": Rule().rule,
    }
    assert "in your line `" in check(rules[kind]).problem


# -- what a rule is --------------------------------------------------------------------
async def coroutine(drafted, q, p, coin):
    return [0]


async def yields(drafted, q, p, coin):
    yield 0


class Awaited:
    async def __call__(self, drafted, q, p, coin):
        return [0]


async def method(world, gamma):
    pass


@pytest.mark.parametrize(
    "rule", [coroutine, yields, Awaited(), functools.partial(coroutine), method]
)
def test_a_rule_that_is_async_is_refused(rule):
    with pytest.raises(BadCall, match="`async def`"):
        check(rule)


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, target, draft, coin: [0],
        lambda drafted, target_probs, draft_probs: [0],
        lambda tokens, target_logits, other, coin: [0],
        lambda candidates, target, draft, coin: 0,
        lambda tokens, parents, p_tree, q_tree, coin: [0],
    ],
)
def test_names_that_show_the_wrong_order_are_noticed(rule):
    with pytest.raises(SpeclibError, match="check passes q before p"):
        check(rule)


@pytest.mark.parametrize(
    "rule",
    [
        lambda draft_tokens, draft_probs, target_probs, coin: [
            draw(target_probs[0], coin())
        ],
        lambda drafted, assistant, target, u: [draw(target[0], u())],
        lambda drafted, q, p, coin=None: [draw(p[0], coin())],
        lambda drafted, q, p, coin, temperature=1.0: [draw(p[0], coin())],
        functools.partial(right),
    ],
)
def test_other_names_and_defaults_are_accepted(rule):
    assert check(rule)


def test_a_rule_that_keeps_state_is_not_said_to_draw_random_numbers():
    calls = []

    def rule(drafted, q, p, coin):
        calls.append(1)
        return [len(calls) % 2]

    answer = check(rule, runs=2000)
    assert (answer.how, answer.is_lossless) == ("sampled", False)
    assert "or keep state between calls?" in answer.scope


def test_a_method_that_asks_no_model_is_judged():
    """It takes no time on the clock, so computing its speed-up divided by 0."""

    def always(world, gamma):
        while world.going:
            world.commit((1,))

    answer = check(always)
    assert answer.is_lossless is False
    assert "waits for no model" in repr(answer)


def test_a_slow_rule_whose_error_was_found_is_judged():
    """Walking may take half of the time, and all cases need far more calls than fit."""

    def slow(drafted, q, p, coin):
        until = time.process_time() + 0.005
        while time.process_time() < until:
            pass
        return [drafted[0]]

    answer = check(slow, seconds=0.2)
    assert answer.is_lossless is False
    assert answer.how == "walked in part"


# -- constant rules --------------------------------------------------------------------
CONSTANT = {
    "0": lambda drafts, vocab: 0,
    "1": lambda drafts, vocab: 1,
    "last": lambda drafts, vocab: vocab - 1,
    "first draft": lambda drafts, vocab: drafts[0],
    "another": lambda drafts, vocab: (drafts[0] + 1) % vocab,
}


@pytest.mark.parametrize("constant", CONSTANT.values(), ids=CONSTANT)
def test_a_rule_that_ignores_the_probabilities_is_always_wrong(constant):
    """Also with deterministic models: each token comes first in one of the cases."""

    def line(drafted, q, p, coin):
        return [constant(drafted, len(p[0]))]

    def tree(tokens, parents, q, p, coin):
        return [constant(tokens, len(p[0]))]

    def candidates(candidates, q, p, coin):
        return constant(candidates, len(p))

    def method(world, gamma):
        while world.going:
            drafts = world.wait(world.draft.propose(world.text, gamma))
            world.commit((constant([draft.token for draft in drafts], world.vocab),))

    for rule in (line, tree, candidates, method):
        answer = check(rule)
        assert (answer.is_lossless, answer.is_lossless_greedy) == (False, False)
        assert "With deterministic models it is lossless" not in repr(answer)


def test_greedy_rules_are_right_for_deterministic_models_in_every_shape():
    def line(drafted, q, p, coin):
        return [int(np.argmax(p[0]))]

    def tree(tokens, parents, q, p, coin):
        return [int(np.argmax(p[0]))]

    def candidates(candidates, q, p, coin):
        return int(np.argmax(p))

    for rule in (line, tree, candidates):
        answer = check(rule)
        assert (answer.is_lossless, answer.is_lossless_greedy) == (False, True)
        assert "With deterministic models it is lossless." in repr(answer)


# -- modules ---------------------------------------------------------------------------
def test_a_module_that_is_slow_to_load_is_loaded_whole(tmp_path, monkeypatch):
    """A half-loaded torch cannot be loaded again in the same process."""
    monkeypatch.setattr("speclab.check.calls.SECONDS", 0.2)
    # The wall-clock limit would end it on a busy machine.
    monkeypatch.setattr("speclab.check.calls.PATIENCE", 1000)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_to_load.py").write_text(
        "import time\nuntil = time.process_time() + 0.6\n"
        "while time.process_time() < until: pass\n"
    )

    def rule(drafted, q, p, coin):
        import slow_to_load  # noqa: F401

        return [draw(p[0], coin())]

    assert check(rule)
    del sys.modules["slow_to_load"]
