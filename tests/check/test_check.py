"""``speclib.check``: is a rule lossless? Decided by enumerating every outcome.

The rules here are written from scratch, after their papers or after code that the audit
read. None is the library's own, except in tests of our methods.
"""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import numpy as np
import pytest

from speclib import SpeclibError, check, draw

DOCS = Path(__file__).resolve().parents[2] / "docs" / "check.md"


# -- rules that are lossless -----------------------------------------------------------
def token_by_token(drafted, q, p, coin):
    """Leviathan et al. 2023, Algorithm 1."""
    committed = []
    for position, token in enumerate(drafted):
        if coin() < p[position][token] / q[position][token]:
            committed.append(token)
            continue
        left = [max(0, a - b) for a, b in zip(p[position], q[position], strict=True)]
        left = [share / sum(left) for share in left]
        return [*committed, draw(left, coin())]
    return [*committed, draw(p[-1], coin())]


def exact_match(drafted, q, p, coin):
    """Keeps a draft if the target draws the same token (DSI, section 3.1)."""
    committed = []
    for token, row in zip(drafted, p, strict=False):
        committed.append(draw(row, coin()))
        if committed[-1] != token:
            return committed
    return [*committed, draw(p[-1], coin())]


def block_with(row_behind=0):
    """Sun et al. 2024, Algorithm 2; with 1, the fallback that the audit found."""

    def block(drafted, q, p, coin):
        gamma = len(drafted)
        weights = [1.0]
        for position, token in enumerate(drafted):
            ratio = p[position][token] / q[position][token]
            weights.append(min(1.0, weights[-1] * ratio))
        kept = 0
        for tried in range(gamma, 0, -1):
            chance = weights[tried]
            if tried < gamma:
                row = p[tried - row_behind]
                mass = np.maximum(weights[tried] * row - q[tried], 0).sum()
                chance = mass / (mass + 1 - weights[tried]) if mass > 0 else 0.0
            if coin() < chance:
                kept = tried
                break
        if kept == gamma:
            return [*drafted, draw(p[gamma], coin())]
        left = np.maximum(weights[kept] * p[kept] - q[kept], 0)
        left = left / left.sum() if left.sum() > 0 else p[kept]
        return [*drafted[:kept], draw(left, coin())]

    return block


def block_by_products(drafted, q, p, coin):
    """As the audit found it: products of ratios against products of coins."""
    ratios, coins, kept = 1.0, 1.0, 0
    for position, token in enumerate(drafted):
        ratios = min(1.0, ratios * p[position][token] / q[position][token])
        coins = coins * coin()
        if ratios >= coins:
            kept = position + 1
    if kept == len(drafted):
        return [*drafted, draw(p[-1], coin())]
    left = np.maximum(p[kept] - q[kept], 0)
    left = left / left.sum() if left.sum() > 0 else p[kept]
    return [*drafted[:kept], draw(left, coin())]


def down_the_tree(tokens, parents, q, p, coin):
    """Removal and renormalisation (Yang et al. 2024), written with plain lists."""
    committed, node = [], -1
    while True:
        left = list(p[node + 1])
        for child in [i for i, parent in enumerate(parents) if parent == node]:
            if coin() < left[tokens[child]] / q[child][tokens[child]]:
                break
            left = [max(0, a - b) for a, b in zip(left, q[child], strict=True)]
            left = [share / sum(left) for share in left]
        else:
            return [*committed, draw(left, coin())]
        committed.append(tokens[child])
        node = child


def pick_one(candidates, q, p, coin):
    for token, row in zip(candidates, q, strict=True):
        if coin() < p[token] / row[token]:
            return token
        p = np.maximum(p - row, 0)
        p = p / p.sum()
    return draw(p, coin())


@pytest.mark.parametrize(
    "rule",
    [token_by_token, exact_match, block_with(), down_the_tree, pick_one],
    ids=["token by token", "exact match", "block", "tree", "candidates"],
)
def test_the_usual_rules_are_lossless(rule):
    answer = check(rule)
    assert answer, answer
    assert answer.how == "walked"
    assert answer.largest_error == 0
    assert repr(answer).startswith("Lossless.\nEvery outcome was enumerated")


@pytest.mark.parametrize("array", [list, np.float32, np.asarray], ids=str)
def test_distributions_have_the_type_that_the_rule_wants(array):
    assert check(token_by_token, array=array)


@pytest.mark.slow
def test_a_rule_may_be_written_with_torch():
    torch = pytest.importorskip("torch")

    def with_tensors(drafted, q, p, coin):
        tokens = torch.tensor(drafted)
        places = torch.arange(len(drafted))
        ratios = p[places, tokens] / q[places, tokens]
        for place, ratio in enumerate(ratios):
            if ratio <= coin():
                left = torch.clamp(p[place] - q[place], min=0)
                extra = draw(left / left.sum(), coin())
                return torch.cat([tokens[:place], torch.tensor([extra])])
        return torch.cat([tokens, torch.tensor([draw(p[-1], coin())])])

    assert check(with_tensors, array=torch.tensor)

    def with_its_own_chance(drafted, q, p):
        for place, token in enumerate(drafted):
            if torch.rand(()) >= p[place, token] / q[place, token]:
                left = torch.clamp(p[place] - q[place], min=0)
                return [*drafted[:place], torch.multinomial(left, 1).item()]
        return [*drafted, torch.multinomial(p[-1], 1).item()]

    answer = check(with_its_own_chance, array=torch.tensor, runs=4000)
    assert (answer.how, answer.problem) == ("sampled", "")


def test_no_rule_commits_more_than_block_verification_does():
    """Both models give the highest possible rate, and the rule reaches it."""
    rate = check(block_with()).rate
    assert rate.value == pytest.approx(rate.best["by whole blocks"], abs=1e-9)
    assert rate.value > rate.best["token by token"]

    rate = check(token_by_token).rate
    assert rate.value == pytest.approx(rate.best["token by token"], abs=1e-9)
    assert check(exact_match).rate.value < rate.value


# -- rules that are not ----------------------------------------------------------------
def replaces_from_p(drafted, q, p, coin):
    for position, token in enumerate(drafted):
        if not coin() < p[position][token] / q[position][token]:
            return [*drafted[:position], draw(p[position], coin())]
    return [*drafted, draw(p[-1], coin())]


def one_coin(drafted, q, p, coin):
    u = coin()
    for position, token in enumerate(drafted):
        if not u < p[position][token] / q[position][token]:
            left = np.maximum(p[position] - q[position], 0)
            return [*drafted[:position], draw(left / left.sum(), coin())]
    return [*drafted, draw(p[-1], coin())]


def ratio_upside_down(drafted, q, p, coin):
    for position, token in enumerate(drafted):
        if p[position][token] and coin() >= q[position][token] / p[position][token]:
            left = np.maximum(p[position] - q[position], 0)
            left = left / left.sum() if left.sum() else p[position]
            return [*drafted[:position], draw(left, coin())]
    return [*drafted, draw(p[-1], coin())]


def likeliest(drafted, q, p, coin):
    """The greedy rule, used for sampling."""
    for position, token in enumerate(drafted):
        best = int(np.argmax(p[position]))
        if token != best:
            return [*drafted[:position], best]
    return [*drafted, int(np.argmax(p[-1]))]


@pytest.mark.parametrize(
    "rule, mistake",
    [
        (replaces_from_p, "residual from p"),
        (one_coin, "one coin for all tests"),
        (ratio_upside_down, "ratio upside down"),
        (block_with(row_behind=1), ""),
        (likeliest, "greedy test when sampling"),
    ],
    ids=["from p", "one coin", "upside down", "one row behind", "likeliest"],
)
def test_wrong_rules_are_found_and_known_ones_named(rule, mistake):
    answer = check(rule)
    assert answer.is_lossless is False
    assert not answer
    assert answer.mistake == mistake
    assert answer.largest_error > 0.001
    assert re.search(r"the \w+ token is \d with probability", answer.problem)


def test_the_smallest_text_comes_first_with_its_probability():
    """By hand: 0 is drafted and kept, or 1 is drafted, rejected, and p draws 0."""
    answer = check(replaces_from_p)
    assert "q = (0.5, 0.5) and p = (0.8, 0.2)" in answer.problem
    assert f"is 0 with probability {0.5 + 0.5 * 0.6 * 0.8:.4f}" in answer.problem
    assert "says 0.8000" in answer.problem


def test_a_rule_that_is_only_right_when_greedy_is_recognised():
    answer = check(likeliest)
    assert answer.is_lossless_greedy
    assert "With deterministic models it is lossless" in repr(answer)
    assert not check(ratio_upside_down).is_lossless_greedy


def test_wrong_rules_for_trees_and_candidates_are_found():
    def takes_the_first(tokens, parents, q, p, coin):
        return [tokens[0]]

    assert not check(takes_the_first)
    answer = check(lambda candidates, q, p, coin: candidates[0])
    assert answer.is_lossless is False
    assert "is written with probability" in answer.problem


def test_a_case_of_probability_0_is_noted_but_is_no_error():
    def not_strict(drafted, q, p, coin):
        for position, token in enumerate(drafted):
            if not coin() <= p[position][token] / q[position][token]:
                left = np.maximum(p[position] - q[position], 0)
                return [*drafted[:position], draw(left / left.sum(), coin())]
        return [*drafted, draw(p[-1], coin())]

    answer = check(not_strict)
    assert answer
    assert "a coin that is exactly 0, which has probability 0" in repr(answer)


# -- rules whose outcomes cannot all be enumerated -------------------------------------
def own_chance(replaces_rightly=True):
    def rule(drafted, q, p):
        for position, token in enumerate(drafted):
            if random.random() >= p[position][token] / q[position][token]:
                left = p[position]
                if replaces_rightly:
                    left = np.maximum(left - q[position], 0)
                (extra,) = random.choices(range(len(left)), left)
                return [*drafted[:position], extra]
        (extra,) = random.choices(range(len(p[-1])), p[-1])
        return [*drafted, extra]

    return rule


def test_a_rule_with_its_own_random_numbers_is_sampled():
    answer = check(own_chance(), runs=4000)
    assert (answer.how, answer.is_lossless, answer.problem) == ("sampled", None, "")
    assert not answer
    assert 0 < answer.would_find < 0.3
    assert repr(answer).startswith("No error was found, by sampling.\nIt draws its")

    answer = check(own_chance(replaces_rightly=False))
    assert (answer.how, answer.is_lossless) == ("sampled", False)
    assert "Chance does not explain that" in answer.problem


def test_products_of_coins_are_sampled_and_found_wrong():
    answer = check(block_by_products)
    assert (answer.how, answer.is_lossless) == ("sampled", False)
    assert "more with a coin than compare it" in repr(answer)


def test_large_vocabularies_and_long_drafts_are_sampled():
    def rule(drafted, q, p, coin):
        for position, token in enumerate(drafted):
            if not coin() < p[position][token] / q[position][token]:
                left = np.maximum(p[position] - q[position], 0)
                left = np.cumsum(left / left.sum())
                return [*drafted[:position], int(np.searchsorted(left, coin()))]
        return [*drafted, int(np.searchsorted(np.cumsum(p[-1]), coin()))]

    answer = check(rule, gamma=8, vocab=500, runs=1000)
    assert (answer.how, answer.problem) == ("sampled", "")
    assert "too many outcomes" in repr(answer)
    assert check(token_by_token, gamma=3, vocab=4).how == "walked"


# -- invalid rules ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "rule, says",
    [
        (lambda drafted, q, p, coin: None, "returns nothing"),
        (lambda drafted, q, p, coin: [], "commits no token"),
        (lambda drafted, q, p, coin: [0] * 9, "commits 9 tokens: one pass decides 2"),
        (lambda drafted, q, p, coin: [7], "commits 7, which is no token here"),
        (lambda drafted, q, p, coin: ["a"], "return a list of tokens"),
        (lambda drafted, q, p, coin: 1 / 0, "ZeroDivisionError in your line"),
        (lambda drafted, q, p, coin: p @ q, "ValueError"),
        (lambda candidates, q, p, coin: 0.5, "return one token"),
    ],
)
def test_a_rule_without_tokens_is_not_judged_and_the_answer_says_why(rule, says):
    answer = check(rule)
    assert (answer.is_lossless, answer.how) == (None, "not run")
    assert not answer
    assert says in answer.problem


def test_a_rule_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr("speclab.check.calls.SECONDS", 0.2)

    def endless(drafted, q, p, coin):
        while True:
            pass

    answer = check(endless)
    assert answer.is_lossless is None
    assert "did not end within 0.2 s" in answer.problem


# -- found by an engineer who had only the manual's page -------------------------------
def test_a_rule_that_was_not_walked_to_the_end_is_not_called_lossless():
    def slow(drafted, q, p, coin):
        until = time.process_time() + 0.002
        while time.process_time() < until:
            pass
        return token_by_token(drafted, q, p, coin)

    answer = check(slow, seconds=0.2)
    assert (answer.is_lossless, answer.how) == (None, "walked in part")
    assert not answer
    assert "of 12 cases" in repr(answer)


@pytest.mark.parametrize("kept", [2, 3])
def test_a_distribution_that_is_cut_to_its_best_tokens_is_found(kept):
    def cut(row):
        row = np.array(row)
        row[np.argsort(-row)[kept:]] = 0
        return row / row.sum()

    def rule(drafted, q, p, coin):
        for position, token in enumerate(drafted):
            if not coin() < p[position][token] / q[position][token]:
                left = np.maximum(p[position] - q[position], 0)
                return [*drafted[:position], draw(cut(left / left.sum()), coin())]
        return [*drafted, draw(p[-1], coin())]

    assert check(rule).is_lossless is False


def test_a_wrong_rule_is_found_by_sampling_in_a_large_vocabulary_too():
    """Each token is off by little there, but the tokens likelier to p are, together."""

    def rule(drafted, q, p, coin):
        def pick(row):
            return min(int(np.searchsorted(np.cumsum(row), coin())), len(row) - 1)

        for position, token in enumerate(drafted):
            if not coin() < p[position][token] / q[position][token]:
                return [*drafted[:position], pick(p[position])]
        return [*drafted, pick(p[-1])]

    answer = check(rule, gamma=4, vocab=1000, runs=2000)
    assert (answer.how, answer.is_lossless) == ("sampled", False)
    assert "that the target finds likelier than the draft" in answer.problem


def test_nan_is_named_with_its_line():
    def rule(drafted, q, p, coin):
        left = np.maximum(p[0] - p[0], 0)
        with np.errstate(invalid="ignore"):
            return [draw(left / left.sum(), coin())]

    answer = check(rule)
    assert answer.is_lossless is None
    assert "NaN" in answer.problem
    assert "return [draw(left / left.sum(), coin())]" in answer.problem


def test_a_rule_that_takes_p_before_q_is_refused():
    with pytest.raises(SpeclibError, match="check passes q before p"):
        check(lambda drafted, p, q, coin: [0])
    with pytest.raises(SpeclibError, match="fits no shape"):
        check(lambda a, b, c, d, e: [0])


@pytest.mark.parametrize(
    "pick",
    [
        lambda row, coin: (np.cumsum(row) > coin()).argmax(),
        lambda row, coin: np.count_nonzero(np.cumsum(row)[:-1] <= coin()),
    ],
)
def test_a_coin_is_compared_with_a_whole_array(pick):
    def rule(drafted, q, p, coin):
        return [pick(p[0], coin)]

    assert check(rule)


def test_coins_in_an_array_are_compared_with_an_array():
    def rule(drafted, q, p, coin):
        places = np.arange(len(drafted))
        ratios = p[places, drafted] / q[places, drafted]
        coins = np.array([coin() for _ in drafted])
        passed = int(np.cumprod((coins < ratios).astype(int)).sum())
        if passed == len(drafted):
            return [*drafted, draw(p[-1], coin())]
        left = np.maximum(p[passed] - q[passed], 0)
        return [*drafted[:passed], draw(left / left.sum(), coin())]

    assert check(rule)


@pytest.mark.parametrize("square", [lambda u: u**2, abs, lambda u: 1 / u])
def test_a_rule_that_computes_too_much_with_a_coin_is_sampled(square):
    def rule(drafted, q, p, coin):
        square(coin())
        return [draw(p[0], coin())]

    assert check(rule, runs=2000).how == "sampled"


def test_a_rare_error_is_reported_with_its_probability():
    """A residual whose sum misses 1 by 1e-8, the probability of its last token."""

    def rule(drafted, q, p, coin):
        for position, token in enumerate(drafted):
            if not coin() < p[position][token] / q[position][token]:
                left = np.maximum(p[position] - q[position], 0)
                left = left / left.sum() * (1 - 1e-8)
                return [*drafted[:position], draw(left, coin())]
        return [*drafted, draw(p[-1], coin())]

    answer = check(rule)
    assert answer
    assert re.search(r"happens with probability 1.0e-08", repr(answer))


@pytest.mark.parametrize("put_back", [False, True])
def test_a_candidate_is_drawn_again_if_it_was_put_back(put_back):
    is_repeated = set()

    def rule(candidates, q, p, coin):
        is_repeated.add(len(set(candidates)) < len(candidates))
        return pick_one(candidates, q, p, coin)

    assert check(rule, put_back=put_back)
    assert is_repeated == {False, put_back}


def test_candidates_of_trees_may_be_put_back():
    assert check(down_the_tree, put_back=True)
    with pytest.raises(SpeclibError, match="put_back is for candidates and trees"):
        check(token_by_token, put_back=True)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"seconds": 0}, "seconds is 0: give a number above 0"),
        ({"gamma": 2.5}, "gamma is 2.5"),
        ({"array": "torch"}, "array is 'torch': give a function"),
    ],
)
def test_impossible_arguments_are_named(arguments, says):
    with pytest.raises(SpeclibError, match=says):
        check(token_by_token, **arguments)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("pearls",), "known: .*pearl"),
        ((3,), "a rule is a function"),
        ((lambda a: a,), "fits no shape"),
        ((token_by_token, "lin"), "no shape 'lin'.*line"),
    ],
)
def test_an_impossible_question_is_answered_with_the_possible_ones(arguments, says):
    with pytest.raises(SpeclibError, match=says):
        check(*arguments)


# -- whole methods ---------------------------------------------------------------------
@pytest.mark.parametrize("name", ["autoregressive", "speculative", "pearl", "dsi"])
def test_a_registered_method_is_checked_by_its_name(name):
    answer = check(name, servers=3)
    assert answer, answer
    assert "times as fast as plain decoding" in repr(answer)


def test_a_method_that_is_not_lossless_is_found():
    def commits_untested(world, gamma):
        while world.going:
            drafted = world.wait(world.draft.propose(world.text, gamma))
            world.commit(draft.token for draft in drafted)

    answer = check(commits_untested)
    assert answer.is_lossless is False
    assert answer.largest_error > 0.1
    assert not answer.is_lossless_greedy


# -- the page of the manual ------------------------------------------------------------
def test_the_manuals_example_gives_the_printed_answer():
    page = DOCS.read_text()
    example, templates, *_ = re.findall(r"```python\n(.*?)```", page, re.S)
    (printed,) = re.findall(r"```\n(Not lossless.*?)```", page, re.S)
    names: dict = {}
    exec(example, names)
    assert printed.strip() in repr(check(names["my_rule"]))

    exec(templates, names)
    for shape in ("line", "tree", "candidates", "method"):
        assert check(names[shape], shape), shape
