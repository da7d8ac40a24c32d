"""What the tokens of two models must have in common.

A model has a *row* for each token that it can be fed and can write. It may have more
rows than its tokenizer has tokens. What is written is the target's to say, so all
distributions of a pair have the target's rows::

    target   0 1 2 3 4 5 6 7       target   0 1 2 3 4 5
    draft    0 1 2 3 4 5 . .       draft    0 1 2 3 4 5 x x

On the left the draft lacks two rows. There its q is 0, so that it never proposes them,
and it is fed a stand-in where the text has them. On the right two of its rows are cut
off before the softmax, so that its q is a distribution of tokens that can be written.
"""

from __future__ import annotations

from collections.abc import Sequence

FIRST = 0  # a token that every model has


def stand_in(named_tokens: Sequence[int], rows: int) -> int:
    """What a draft with ``rows`` is fed instead of a token that it has no row for.

    named_tokens: its unknown token and its end tokens. The first with a row is taken,
    else its first token. What the draft proposes then may be poor, but it is tested as
    every draft is: the output stays the target's own.
    """
    return next((token for token in named_tokens if token < rows), FIRST)


def known_tokens(tokens: Sequence[int], rows: int, stand_in: int) -> list[int]:
    """``tokens``, with ``stand_in`` instead of those that ``rows`` rows lack."""
    return [token if token < rows else stand_in for token in tokens]
