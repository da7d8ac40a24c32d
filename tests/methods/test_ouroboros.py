"""Ouroboros: its output, and its passes and phrases compared with hand runs."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from speclib import replay
from speclib.core.sampling import Coins, Sampler
from speclib.core.verification import Verified, verify_tree
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.methods.ouroboros import ngrams_of_answers
from speclib.models.toy import Random, Toy
from speclib.trace.events import LOOKUP
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import distance, outcomes, truth

TOKEN_BY_TOKEN = {"window": 0, "ngram": 3}
SAMPLERS = [Sampler(), Sampler(1.0), Sampler(0.7, 3)]


class Successor(Random):
    """A model that writes x + 1 after token x, modulo the vocabulary.

    ``exceptions`` gives other next tokens for certain last tokens.
    """

    def __init__(self, exceptions=()):
        super().__init__(vocab=10)
        self.exceptions = dict(exceptions)

    def rows(self, text, last, sampler):
        super().rows(text, last, sampler)  # updates the cache
        text = tuple(text)
        ends = range(len(text) - last, len(text) + 1)
        return np.eye(self.vocab)[[self.token_after(text[:end]) for end in ends]]

    def chances(self):
        return np.eye(self.vocab)[self.token_after(tuple(self.prefix.fed))]

    def token_after(self, text) -> int:
        token = (text[-1] + 1) % self.vocab
        for end, exception in self.exceptions.items():
            if text[-len(end) :] == end:
                token = exception
        return token


def of_round(trace, number: int, op: str) -> list:
    return [e for e in trace.events if (e.round, e.op) == (number, op)]


def what_happened(trace) -> list[tuple]:
    """Returns each event's time, device, cache and tokens, without its name."""
    return [
        (e.ts, e.dur, e.device, e.tokens, e.outcome, e.kept, e.fed)
        for e in trace.events
    ]


def drafted_in_rounds(trace) -> list[tuple[int, ...]]:
    """Returns the tokens drafted in each round, whatever the number of passes."""
    by_round = [() for _ in trace.commits]
    for event in trace.operations:
        if event.is_drafting:
            by_round[event.round] += event.tokens
    return by_round


# -- without phrases -------------------------------------------------------------------
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("gamma", [1, 3, 5])
def test_without_phrases_it_is_speculative_decoding_pass_for_pass(
    decode, sampler, gamma
):
    for seed in range(5):
        models = {"draft": Random(4, seed), "target": Random(4, seed + 50)}
        how = {"sampler": sampler, "coins": Coins(seed), "gamma": gamma}
        _, expected = decode(METHODS["speculative"], models, 40, **how)
        how |= {"phrases": 0, **TOKEN_BY_TOKEN}
        _, trace = decode(METHODS["ouroboros"], models, 40, **how)
        assert what_happened(trace) == what_happened(expected)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_drafting_by_phrases_drafts_the_same_tokens_in_fewer_passes(decode, sampler):
    """The pool affects how many tokens a pass drafts, but not which."""
    saved = 0
    for seed in range(3):
        models = {"draft": Random(3, seed), "target": Random(3, seed + 50)}
        how = {"sampler": sampler, "coins": Coins(seed), "gamma": 5}
        _, expected = decode(METHODS["speculative"], models, 40, **how)
        how |= {"phrases": 0, "window": 3, "ngram": 3}
        _, trace = decode(METHODS["ouroboros"], models, 40, **how)

        assert drafted_in_rounds(trace) == drafted_in_rounds(expected)
        assert [e.tokens for e in trace.commits] == [e.tokens for e in expected.commits]
        saved += stats(expected).draft_runs - stats(trace).draft_runs
    assert saved > 0


# -- by hand ---------------------------------------------------------------------------
def test_by_hand_the_draft_follows_its_own_ngrams_and_a_phrase_extends_it(decode):
    """Draft and target count modulo ten; gamma = 5, W = 2, N = 3.

    Each pass yields a wrong n-gram for the text's last token and a right one for the
    token before: pass 2, after 6, yields 6 8 9 and 5 6 7. In round 1, five passes draft
    6 to 0. The bonus token 1 moves the text one position further than the window, so
    from then on the last token's n-gram is right: in round 2, passes after 1 to 5 yield
    1 2 3 and so on. The latest phrase after the last draft, 6, is 7 8 from pass 3.

    In round 3, the text ends with 9, for which pass 6 yielded 9 0 1. Two of its tokens
    pass, and the pass adds a third. After 2, the n-gram 2 3 4 yields 3 and one more
    token, so two passes draft five. Then the phrase 5 6 follows the 4.
    """
    models = {"draft": Successor(), "target": Successor()}
    output, trace = decode(
        METHODS["ouroboros"],
        models,
        22,
        prompt=(7, 5),
        gamma=5,
        phrases=1,
        window=2,
        ngram=3,
    )
    assert output == tuple(n % 10 for n in range(6, 28))
    assert [len(e.tokens) for e in trace.commits] == [6, 8, 8]
    draft_sizes = [[1] * 5, [1] * 5, [3, 2]]
    offered_phrases = [[], [(7, 8)], [(5, 6)]]
    for number in range(3):
        drafts = of_round(trace, number, "draft_phrase")
        assert [len(e.tokens) for e in drafts] == draft_sizes[number]
        offered = of_round(trace, number, "lookup")
        assert [e.tokens for e in offered] == offered_phrases[number]


def test_by_hand_the_targets_tokens_after_failed_drafts_become_phrases(decode):
    """The draft writes 5 after 1, so it drafts 1 5 6 7; 2 replaces the rejected 5.

    After 5, 6 and 7, the target's tokens are 6, 7 and 8, which yields the phrases
    5 6 7, 6 7 8 and 7 8. Next the draft writes 3 4 5 6, and 7 8 follows: seven tokens
    with the bonus.
    """
    models = {"draft": Successor({(1,): 5}), "target": Successor()}
    _, trace = decode(METHODS["ouroboros"], models, 9, gamma=4, **TOKEN_BY_TOKEN)
    assert [e.tokens for e in trace.commits] == [(1, 2), (3, 4, 5, 6, 7, 8, 9)]
    (lookup,) = of_round(trace, 1, "lookup")
    assert lookup.tokens == (7, 8)
    assert lookup.outcome == ("accepted", "accepted")

    counts = stats(trace)
    assert (counts.target_runs, counts.draft_runs) == (2, 8)
    assert (counts.accepted, counts.rejected) == (7, 1)


def test_by_hand_a_failed_phrase_is_corrected_by_the_targets_tokens(decode):
    """The target writes 8 after 1 5, and 6 after any other 5.

    Round 1 drafts 1 5 6 and rejects 5; the phrases are 5 8 and 6 7. Round 2 drafts
    3 4 5 and tries 8; the target writes 6, and after 8 it writes 9, so 5 8 becomes
    5 6 9. Round 4 equals round 1, except that 7 follows its last draft and is tested
    with the 5. So round 5 tries 8 and 6 9 after the 5, and 6 passes.
    """
    models = {"draft": Successor({(1,): 5}), "target": Successor({(1, 5): 8})}
    settings = {"gamma": 3, "phrases": 2, **TOKEN_BY_TOKEN}
    _, trace = decode(METHODS["ouroboros"], models, 18, **settings)
    assert [len(e.tokens) for e in trace.commits] == [2, 4, 4, 2, 5, 1]
    offered = {e.round: (e.tokens, e.outcome) for e in trace.events if e.op == "lookup"}
    assert offered == {
        1: ((8,), ("rejected",)),
        3: ((7,), ("discarded",)),
        4: ((8, 6, 9), ("discarded", "accepted", "rejected")),
    }


def test_a_phrase_follows_the_drafts_that_the_target_agrees_with():
    """For 5 6 7 8 the target's tokens are 6 7 0 9: it agrees with 6 and 7, not 8."""
    phrases = list(ngrams_of_answers((5, 6, 7, 8), (6, 7, 0, 9), longest=9))
    assert phrases == [(5, 6, 7, 0), (6, 7, 0), (7, 0), (8, 9)]
    assert list(ngrams_of_answers((5, 6), (6, 7), longest=1)) == [(5, 6), (6, 7)]


# -- the ends of texts -----------------------------------------------------------------
def test_nothing_follows_a_drafted_end_token(decode):
    """In the run above, 7 8 would follow 3 4 5 6, but here 6 ends the text."""
    models = {"draft": Successor({(1,): 5}), "target": Successor()}
    output, trace = decode(
        METHODS["ouroboros"],
        models,
        20,
        gamma=4,
        eos=frozenset({6}),
        **TOKEN_BY_TOKEN,
    )
    assert output == (1, 2, 3, 4, 5, 6)
    assert not [e for e in trace.events if e.op == "lookup"]


@pytest.mark.parametrize("window", [0, 1, 4])
def test_a_text_may_fill_the_context_to_its_last_token(decode, window):
    for prompt in range(1, 6):
        models = {
            "draft": Toy(0.8, 5, 0, (1, 2, 3, 4), context=16),
            "target": Toy(None, 5, 0, (1, 2, 3, 4), context=16),
        }
        start = (0,) * prompt
        limit = 16 - prompt
        expected, _ = decode(METHODS["autoregressive"], models, limit, prompt=start)
        settings = {"gamma": 3, "window": window, "ngram": 3}
        output, _ = decode(
            METHODS["ouroboros"], models, limit, prompt=start, **settings
        )
        assert output == expected


@pytest.mark.parametrize(
    "name, value, least",
    [("phrases", -1, 0), ("window", -1, 0), ("ngram", 2, 3), ("guesses", 0, 1)],
)
def test_an_impossible_setting_is_refused(decode, name, value, least):
    models = {"draft": Random(3), "target": Random(3)}
    with pytest.raises(SpeclibError, match=f"{name} is {value}: give at least {least}"):
        decode(METHODS["ouroboros"], models, 4, gamma=2, **{name: value})


# -- output ----------------------------------------------------------------------------
def test_on_a_repetitive_text_it_needs_fewer_passes_of_either_model(decode):
    """Compared with speculative decoding at the same gamma."""
    models = {
        "draft": Toy(0.8, 50, 0, (1, 2, 3, 4, 5)),
        "target": Toy(None, 50, 0, (1, 2, 3, 4, 5)),
    }
    output, trace = decode(METHODS["ouroboros"], models, 120, gamma=4)
    _, speculative_trace = decode(METHODS["speculative"], models, 120, gamma=4)
    ours = stats(trace)
    speculative = stats(speculative_trace)

    assert output == (1, 2, 3, 4, 5) * 24
    assert ours.target_runs < speculative.target_runs
    assert ours.draft_runs < speculative.draft_runs
    assert ours.tokens == ours.accepted + ours.target_runs


def believing(world, tree, rows):
    """Acts as ``verify_tree``, but accepts a phrase's first token without a test."""
    verified = verify_tree(world, tree, rows)
    drafted = sum(
        draft.operation == tree.drafted[0].operation for draft in tree.drafted
    )
    all_passed = len(verified.accepted) >= drafted
    if all_passed and len(tree.drafted) > drafted:
        first_of_phrase = tree.drafted[drafted].token
        return Verified(verified.accepted[:drafted], (first_of_phrase,))
    return verified


@pytest.mark.parametrize("gamma", [1, 2])
def test_the_enumerator_reaches_phrases_and_finds_an_untested_one(gamma, monkeypatch):
    """Otherwise the method's error of zero would mean nothing."""
    pair = {"draft": Random(2, 11, 6), "target": Random(2, 21, 6)}
    expected = truth(pair["target"], 5)

    settings = {"gamma": gamma, "phrases": 2, **TOKEN_BY_TOKEN}

    def error() -> float:
        chances = outcomes(METHODS["ouroboros"], pair, 5, **settings)
        return distance(chances, expected)

    assert error() < 1e-12
    module = import_module("speclib.methods.ouroboros")
    monkeypatch.setattr(module, "verify_tree", believing)
    assert error() > 1e-3


@pytest.mark.parametrize("window", [0, 3])
def test_a_sampled_run_in_which_phrases_pass_can_be_replayed(decode, window):
    models = {"draft": Random(4), "target": Random(4, 5)}
    settings = {"gamma": 2, "window": window, "ngram": 3}
    _, trace = decode(
        METHODS["ouroboros"], models, 60, sampler=Sampler(1.0), **settings
    )
    assert any("accepted" in e.outcome for e in trace.events if e.op == "lookup")
    assert replay(trace, "ouroboros").events == trace.events


# -- the embedded pair -----------------------------------------------------------------
def test_no_corrected_phrase_is_longer_than_an_ngram(decode):
    """A phrase of ``ngram`` tokens is tested without its first, which is a draft."""
    lengths = set()
    for seed in range(8):
        models = {"draft": Random(3, 3 + seed), "target": Random(3, 40 + seed)}
        settings = {"window": 2, "ngram": 3, "guesses": 3, "phrases": 1}
        _, trace = decode(METHODS["ouroboros"], models, 60, gamma=2, **settings)
        for event in trace.events:
            if event.op == LOOKUP:
                lengths.add(len(event.tokens))
    assert max(lengths) == 3 - 1
