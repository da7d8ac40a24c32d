"""In published lookahead decoding, a full match commits one token less."""

from __future__ import annotations

import numpy as np
import pytest

from speclab.mutants.lookahead_as_published import lookahead_as_published
from speclib.methods import METHODS
from speclib.models.toy import Random


class Successor(Random):
    """A model that writes x + 1 after token x, modulo the vocabulary."""

    def _distribution_after(self, text, sampler):
        return np.eye(self.vocab)[(text[-1] + 1) % self.vocab]


@pytest.mark.parametrize(
    "method, most, passes",
    [(METHODS["lookahead"], 3, 20), (lookahead_as_published, 2, 25)],
)
def test_a_full_match_commits_one_token_less_as_published(decode, method, most, passes):
    """With N = 3, two tokens pass, and the third, after them, is discarded.

    The target repeatedly counts from 0 to 9. After ten passes of one token, every pass
    finds its n-gram: 30 more tokens take ten passes of three, or 15 of two.
    """
    models = {"draft": Random(10), "target": Successor(10)}

    output, trace = decode(
        method, models, 40, prompt=(7, 5), window=2, ngram=3, guesses=2
    )

    assert output == tuple(n % 10 for n in range(6, 46))
    assert max(len(event.tokens) for event in trace.commits) == most
    assert len(trace.commits) == passes
