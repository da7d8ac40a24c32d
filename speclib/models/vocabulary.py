"""What the tokens of two models must have in common.

A model has a *row* for each token that it can read and write. It may have more rows
than its tokenizer has tokens. The target decides what is written, so all distributions
of a pair have the target's rows::

    target   0 1 2 3 4 5 6 7       target   0 1 2 3 4 5
    draft    0 1 2 3 4 5 . .       draft    0 1 2 3 4 5 x x

On the left the draft lacks two rows. Its q is 0 there, so it never proposes these
tokens; if the text has one, the draft is fed a stand-in. On the right two of its rows
are cut off before the softmax, so that its q covers only tokens that can be written.
"""

from __future__ import annotations

from collections.abc import Sequence

FIRST = 0  # a token that every model has


def stand_in(named_tokens: Sequence[int], rows: int) -> int:
    """The token that a draft with ``rows`` is fed for one that it has no row for.

    named_tokens: its unknown token and its end tokens; the first that has a row is the
    stand-in, else the draft's first token. Its proposals may then be poor, but they are
    verified like any others: the output stays the target's own.
    """
    return next((token for token in named_tokens if token < rows), FIRST)


def known_tokens(tokens: Sequence[int], rows: int, stand_in: int) -> list[int]:
    """``tokens``, with ``stand_in`` replacing those that have none of the ``rows``."""
    return [token if token < rows else stand_in for token in tokens]
