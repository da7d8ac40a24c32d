"""Lookahead decoding as published: its passes, against the published loop on lists."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from speclib.audit.planted.lookahead_as_published import lookahead_as_published
from speclib.core.sampling import Coins, Sampler
from speclib.methods import METHODS
from speclib.models.toy import Random

SETTINGS = [
    {"window": w, "ngram": n, "guesses": g}
    for w, n, g in product((1, 2, 5), (3, 4, 6), (1, 3))
]


class Successor(Random):
    """After token x comes x + 1, modulo the vocabulary."""

    def _row(self, text, sampler):
        return np.eye(self.vocab)[(text[-1] + 1) % self.vocab]


def first_window_of(trace):
    """The tokens that the window begins with: all that the first pass looks at."""
    first_pass = trace.operations[0]
    return first_pass.tokens[-first_pass.candidates :]


def published_passes(model, prompt, first_window, limit, window, ngram, guesses):
    """What each pass of the published greedy code adds, from its loop on lists.

    As in ``jacobi_greedy_search_multilevel`` of its branch main, 2024-02-14: ``levels``
    are its past_tokens, ``pool`` its token_map, a pass's first guess is what follows
    the text. Its models are asked for one text at a time.
    """

    def likeliest(*tokens):
        return int(model.rows((*text, *tokens), 0, Sampler())[0].argmax())

    text, added = tuple(prompt), []
    levels, pool = [list(first_window)], {}
    while len(text) < len(prompt) + limit:
        last, hits = text[-1], [likeliest()]
        line = levels[0]  # a line after the text; below it, columns
        if len(levels) == 1:
            new = [likeliest(*line[: n + 1]) for n in range(len(line))]
            levels = [line[1:], new]
        else:
            new = []
            for n in range(len(levels[-1])):
                column = [level[n] for level in levels[1:]]
                new.append(likeliest(*line[:n], *column))
            if len(levels) < ngram - 1:
                levels = [level[1:] for level in levels] + [new[1:]]
            else:
                for guess in pool.get(last, []):
                    correct = list(hits[:1])
                    for n in range(len(guess)):
                        correct.append(likeliest(*guess[: n + 1]))
                    matched = 0
                    for matched in range(len(guess)):  # noqa: B007  # as published
                        if guess[matched] != correct[matched]:
                            break
                    if matched >= len(hits):
                        hits = correct[: matched + 1]
                for n in range(window):
                    key = last if n == 0 else line[n - 1]
                    tail = tuple(level[n] for level in levels[1:]) + (new[n],)
                    tails = [t for t in pool.get(key, []) if t != tail] + [tail]
                    pool[key] = tails[-guesses:]
                levels = [levels[1][1:], *levels[2:], new]
        text += tuple(hits)
        added.append(len(hits))
    return added


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_as_published_takes_the_passes_of_the_published_code(decode, seed, settings):
    models = {"draft": Random(4), "target": Random(4, seed)}
    prompt = (1, 3, 0, 2, 2)
    _, trace = decode(
        lookahead_as_published,
        models,
        60,
        prompt=prompt,
        **settings,
    )
    first_window = first_window_of(trace)
    assert set(first_window) <= set(prompt)
    passes = published_passes(
        Random(4, seed), prompt, first_window, limit=60, **settings
    )
    ours = [len(event.tokens) for event in trace.commits]
    assert ours[:-1] == passes[:-1]  # the last one ends at the limit
    assert len(ours) == len(passes)


@pytest.mark.parametrize(
    "method, most, passes",
    [(METHODS["lookahead"], 3, 20), (lookahead_as_published, 2, 25)],
)
def test_a_full_match_gives_one_token_less_as_published(decode, method, most, passes):
    """N = 3: two tokens pass and a third follows them, which is thrown away.

    The target counts 0 to 9 again and again. After ten passes of one token every pass
    finds its n-gram: 30 more tokens take ten passes by threes, and 15 by twos.
    """
    models = {"draft": Random(10), "target": Successor(10)}
    output, trace = decode(
        method, models, 40, prompt=(7, 5), window=2, ngram=3, guesses=2
    )
    assert output == tuple(n % 10 for n in range(6, 46))
    assert max(len(event.tokens) for event in trace.commits) == most
    assert len(trace.commits) == passes


def test_the_published_window_begins_with_random_tokens_of_the_prompt(decode):
    models = {"draft": Random(9), "target": Random(9, 1)}
    windows = set()
    for seed in range(20):
        _, trace = decode(
            lookahead_as_published,
            models,
            2,
            prompt=(1, 4, 4, 7),
            coins=Coins(seed),
            window=8,
        )
        windows.add(first_window_of(trace))
    drawn = [token for window in windows for token in window]
    assert len(windows) == 20
    assert set(drawn) == {1, 4, 7}
    # 200 draws, each a 4 with probability 1/2: outside by chance once in 10^8
    assert 60 < drawn.count(4) < 140
