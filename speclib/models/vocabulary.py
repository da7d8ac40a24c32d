"""How a pair works if the draft's vocabulary is smaller or larger than the target's.

A model has a *row* for each token that it can read and write. It may have more rows
than its tokenizer has tokens. The target decides what is written, so all distributions
of a pair have the target's rows::

    target   0 1 2 3 4 5 6 7       target   0 1 2 3 4 5
    draft    0 1 2 3 4 5 . .       draft    0 1 2 3 4 5 x x

On the left, the draft lacks two rows. Its q is 0 there, so it never proposes these
tokens; if the text contains one, the draft is fed a stand-in. On the right, the draft's
last two rows are cut off before the softmax, so that its q covers only tokens that can
be written.
"""

from __future__ import annotations

from collections.abc import Sequence

FIRST = 0  # a token that every model has


def stand_in(named_tokens: Sequence[int], rows: int) -> int:
    """The token fed to a draft with ``rows`` rows in place of a token without a row.

    named_tokens: the draft's unknown token and its end tokens. The first one with a row
    is the stand-in; if none has a row, it is token 0. The draft's proposals may then be
    poor, but they are verified like any others, so the output is still the target's.
    """
    return next((token for token in named_tokens if token < rows), FIRST)


def known_tokens(tokens: Sequence[int], rows: int, stand_in: int) -> list[int]:
    """``tokens``, with ``stand_in`` in place of each one that has no row."""
    return [token if token < rows else stand_in for token in tokens]
