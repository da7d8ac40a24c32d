"""Lookahead decoding: its output, and its window and pool compared with a hand run."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from speclib.core.sampling import Coins, Sampler
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.methods.lookahead import Pool, Window
from speclib.models.toy import Random, Toy
from speclib.trace.metrics import stats

SETTINGS = [
    {"window": w, "ngram": n, "guesses": g}
    for w, n, g in product((1, 2, 5), (3, 4, 6), (1, 3))
]


class Successor(Random):
    """A model that writes x + 1 after token x, modulo the vocabulary."""

    def rows(self, text, last, sampler):
        super().rows(text, last, sampler)  # updates the cache
        last_tokens = np.array(text[len(text) - last - 1 :])
        return np.eye(self.vocab)[(last_tokens + 1) % self.vocab]


def by_hand(decode, limit: int, **settings):
    models = {"draft": Random(10), "target": Successor(10)}
    output, trace = decode(
        METHODS["lookahead"],
        models,
        limit,
        prompt=(7, 5),
        window=2,
        ngram=3,
        **settings,
    )
    assert output == tuple(n % 10 for n in range(6, 6 + limit))
    return trace


# -- the two branches ------------------------------------------------------------------
def test_the_window_grows_to_its_levels_then_moves_one_position_per_pass(decode):
    """The settings are W = 2 and N = 3.

    The window begins as the prompt, 7 5, which the target continues with 8 and 6. Then
    it is 5 | 8 6, continued with 9 and 7; then 6 | 9 7, then 7 | 0 8. A level contains
    the target's tokens for the level above, without its first position.
    """
    passes = by_hand(decode, 4, guesses=1).operations
    assert [e.tokens[-e.tested :] for e in passes] == [
        (7, 5),
        (5, 8, 6),
        (6, 9, 7),
        (7, 0, 8),
    ]
    assert [e.payload.likeliest for e in passes] == [(8, 6), (9, 7), (0, 8), (1, 9)]


def test_the_latest_ngram_that_begins_with_the_last_token_is_tested_first(decode):
    """Each key gets a wrong and then a right n-gram: 6 8 9 and 5 6 7, then 7 9 0 and
    6 7 8, and so on.

    After 10 passes, the text ends with 5 again, which has only the right n-gram. Then
    it ends with 8, for which 8 9 0 was added after 8 0 1.
    """
    trace = by_hand(decode, 19, guesses=2)
    assert [len(e.tokens) for e in trace.commits] == [1] * 10 + [3] * 3
    first, second, *_ = [e for e in trace.events if e.op == "lookup"]
    assert first.tokens == (6, 7)
    assert first.outcome == ("accepted", "accepted")
    assert second.tokens == (9, 0, 0, 1)
    assert second.outcome == ("accepted", "accepted", "discarded", "discarded")

    one_guess = by_hand(decode, 19, guesses=1)
    lookups = [e.tokens for e in one_guess.events if e.op == "lookup"]
    assert lookups[:2] == [(6, 7), (9, 0)]


def test_an_ngram_found_again_becomes_the_latest_and_the_oldest_is_dropped():
    pool = Pool(most=2)
    for tail in ((1, 2), (3, 4), (1, 2), (5, 6)):
        pool.add((0, *tail))
    assert pool.starting_with(0) == [(5, 6), (1, 2)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_pass_contains_the_window_and_at_most_the_given_guesses(decode, settings):
    w, n, g = settings.values()
    models = {"draft": Random(3), "target": Random(3, 1)}
    _, trace = decode(METHODS["lookahead"], models, 60, **settings)

    guessed = {e.round: len(e.tokens) for e in trace.events if e.op == "lookup"}
    assert 0 < max(guessed.values()) <= g * (n - 1)
    assert min(guessed) > n - 2

    # The window grows to n - 1 levels; the text's last token is its first token.
    for step, scoring in enumerate(trace.operations):
        width = w
        levels = n - 1
        if step < n - 2:
            width = w + n - 2 - step
            levels = step + 1
        in_window = scoring.tested - guessed.get(scoring.round, 0)
        assert in_window == levels * width - 1


def test_the_window_ends_at_the_end_of_the_context(decode):
    """Of 9 positions, the text has 7 before the last pass; the window needs 3 more."""
    models = {"draft": Random(3), "target": Toy(None, 5, 0, (1, 2, 3, 4), context=9)}
    output, trace = decode(METHODS["lookahead"], models, 9, window=3, ngram=3)
    assert output == (1, 2, 3, 4, 1, 2, 3, 4, 1)
    first, *_, last = trace.operations
    assert first.tested == 3
    assert last.payload.likeliest == ()
    assert last.kept + last.fed <= 9


# -- output ----------------------------------------------------------------------------
@pytest.mark.parametrize("sampler", [Sampler(), Sampler(1.0), Sampler(0.8, 2)], ids=str)
def test_the_tokens_equal_plain_decodings_with_any_setting(decode, sampler):
    for seed, settings in enumerate(SETTINGS):
        models = {"draft": Random(3), "target": Random(3, seed)}
        how = {"sampler": sampler, "coins": Coins(seed)}
        if seed % 2:
            how["eos"] = frozenset({2})
        plain, _ = decode(METHODS["autoregressive"], models, 40, **how)
        output, _ = decode(METHODS["lookahead"], models, 40, **how, **settings)
        assert output == plain, settings


def test_on_a_repetitive_text_several_tokens_are_accepted_at_once(decode):
    models = {
        "draft": Toy(0.5, 50, 0, (1, 2, 3)),
        "target": Toy(None, 50, 0, (1, 2, 3)),
    }
    output, trace = decode(METHODS["lookahead"], models, 120)
    counts = stats(trace)
    assert output == (1, 2, 3) * 40
    assert counts.mat > 2
    assert counts.tokens == counts.accepted + counts.target_runs
    assert counts.draft_runs == 0
    assert counts.rounds == counts.operations == counts.target_runs


# -- bad settings ----------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, value, least", [("window", 0, 1), ("ngram", 2, 3), ("guesses", 0, 1)]
)
def test_an_impossible_setting_is_refused(decode, name, value, least):
    models = {"draft": Random(3), "target": Random(3)}
    with pytest.raises(SpeclibError, match=f"{name} is {value}: give at least {least}"):
        decode(METHODS["lookahead"], models, 4, **{name: value})


# -- the embedded pair -----------------------------------------------------------------
def test_a_growing_window_drops_its_first_column_and_keeps_the_others_together():
    """The likeliest successor stays below its token, as 22 below 12."""
    window = Window((1, 2, 3, 4, 5), span=5, height=3)
    window.move((11, 12, 13, 14, 15))
    assert window.levels == [(2, 3, 4, 5), (11, 12, 13, 14, 15)]
    window.move((21, 22, 23, 24, 25))
    assert window.levels == [(3, 4, 5), (12, 13, 14, 15), (22, 23, 24, 25)]
