"""Lookahead decoding as published: its passes, against the published loop on lists."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from speclab.mutants.lookahead_as_published import lookahead_as_published
from speclib.core.sampling import Coins, Sampler
from speclib.methods import METHODS
from speclib.models.toy import Random

SETTINGS = [
    {"window": window, "ngram": ngram, "guesses": guesses}
    for window, ngram, guesses in product((1, 2, 5), (3, 4, 6), (1, 3))
]


class Successor(Random):
    """After token x comes x + 1, modulo the vocabulary."""

    def _distribution_after(self, text, sampler):
        return np.eye(self.vocab)[(text[-1] + 1) % self.vocab]


def first_window_of(trace):
    """The tokens that the window begins with: all that the first pass looks at."""
    first_pass = trace.operations[0]
    return first_pass.tokens[-first_pass.candidates :]


class PublishedLoop:
    """The published greedy loop on lists; its model is asked for one text at a time.

    As in ``jacobi_greedy_search_multilevel`` of its branch main, 2024-02-14. ``levels``
    are its past_tokens: the first is a line after the text, those below it are columns.
    ``pool`` is its token_map.
    """

    def __init__(self, model, prompt, first_window, window, ngram, guesses):
        self.model = model
        self.window = window
        self.height = ngram - 1
        self.guesses = guesses
        self.text = tuple(prompt)
        self.levels = [list(first_window)]
        self.pool = {}

    def take_pass(self):
        """Adds a pass's tokens to the text, and says how many they are."""
        hits = [self.likeliest_after()]
        written = self.write_level()
        if len(self.levels) == self.height:
            hits = self.test_guesses(hits)
            self.remember_ngrams(written)
        self.move_window(written)
        self.text += tuple(hits)
        return len(hits)

    def likeliest_after(self, *tokens):
        """What the model would write after the text and these tokens."""
        rows = self.model.rows((*self.text, *tokens), 0, Sampler())
        return int(rows[0].argmax())

    def write_level(self):
        """The likeliest token after each token of the lowest level."""
        line, *columns = self.levels
        written = []
        for index in range(len(self.levels[-1])):
            if columns:
                column = [level[index] for level in columns]
                token = self.likeliest_after(*line[:index], *column)
            else:
                token = self.likeliest_after(*line[: index + 1])
            written.append(token)
        return written

    def test_guesses(self, hits):
        """The longest guess that the model writes too, with the token after it.

        The first token of a guess is what follows the text. Where all of a guess is
        right, ``matched`` stays one too low, as published.
        """
        for guess in self.pool.get(self.text[-1], []):
            correct = [hits[0]]
            for end in range(1, len(guess) + 1):
                correct.append(self.likeliest_after(*guess[:end]))

            matched = 0
            for matched in range(len(guess)):  # noqa: B007  # as published
                if guess[matched] != correct[matched]:
                    break
            if matched >= len(hits):
                hits = correct[: matched + 1]
        return hits

    def remember_ngrams(self, written):
        """Each column and what was written below it, by the token before it."""
        line, *columns = self.levels
        first_tokens = [self.text[-1], *line]
        for index in range(self.window):
            column = [level[index] for level in columns]
            tail = (*column, written[index])

            tails = self.pool.setdefault(first_tokens[index], [])
            if tail in tails:
                tails.remove(tail)
            tails.append(tail)
            del tails[: -self.guesses]

    def move_window(self, written):
        """What was written becomes the lowest level, and the highest of a full window
        goes."""
        line, *columns = self.levels
        if not columns:
            self.levels = [line[1:], written]
        elif len(self.levels) < self.height:
            shorter = [level[1:] for level in self.levels]
            self.levels = [*shorter, written[1:]]
        else:
            self.levels = [columns[0][1:], *columns[1:], written]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_as_published_takes_the_passes_of_the_published_code(decode, seed, settings):
    target = Random(4, seed)
    models = {"draft": Random(4), "target": target}
    prompt = (1, 3, 0, 2, 2)

    _, trace = decode(lookahead_as_published, models, 60, prompt=prompt, **settings)
    first_window = first_window_of(trace)
    our_passes = [len(event.tokens) for event in trace.commits]

    published = PublishedLoop(target, prompt, first_window, **settings)
    published_passes = []
    while sum(published_passes) < 60:
        published_passes.append(published.take_pass())

    assert set(first_window) <= set(prompt)
    assert our_passes[:-1] == published_passes[:-1]  # the last one ends at the limit
    assert len(our_passes) == len(published_passes)


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
