"""What a device says of its rows where it does not send them."""

from __future__ import annotations

import numpy as np

from speclib.core.far_rows import RowFacts

from .operation import Operation, Raw, Request

# Tokens above this are said of each row: a draft that the device was not told of is
# most often one of them. There are a thousand at most, and hardly ever more than fifty.
LIKELY = 0.001


def facts_of_rows(operation: Operation, raw: Raw, request: Request) -> list[RowFacts]:
    """What a test of drafted tokens asks of each of the rows [n, V] of a result."""
    rows = raw.rows
    vocab = rows.shape[-1]
    drafted = [token for token in operation.tokens_in_test(raw) if token < vocab]
    positions: list[int | None] = [len(text) for text in operation.texts]

    facts = []
    for row, position in zip(rows, positions or [None] * len(rows), strict=True):
        target_token = None
        if position is not None:
            target_token = request.coins.choose(row, position, "target")
        is_said = row > LIKELY
        is_said[drafted] = True
        tokens = np.flatnonzero(is_said)
        likeliest = int(row.argmax())
        facts.append(
            RowFacts(vocab, likeliest, tokens, row[tokens], position, target_token)
        )
    return facts
