"""Documents packed into rows of equal length.

Every row starts with a fresh document, so that position 0 is always a beginning; the document
that does not fit is cut at the end of its row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from speclib.data.training_tasks import code, corpus

from .tokenizer import Writer

LIBRARY_SHARE = 0.03  # of all documents: some real code among the generated one
LIBRARY_CHARACTERS = 1_500_000


def documents(
    writer: Writer, seed: int, weight: dict[str, int] = corpus.WEIGHT
) -> Iterator:
    """An endless stream of (ids, weights): tasks, and now and then a piece of real code."""
    rng, tasks = random.Random(seed + 1), corpus.tasks(seed, weight)
    pieces = code.library(rng, LIBRARY_CHARACTERS)
    while True:
        if rng.random() < LIBRARY_SHARE:
            yield writer.plain(rng.choice(pieces))
        else:
            yield writer.document(next(tasks))


def batches(
    stream: Iterator, size: int, length: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless batches: ids (size, length) int64 and weights (size, length) float32."""
    while True:
        rows, weights = [], []
        for _ in range(size):
            row, weight = [], []
            while len(row) < length:
                ids, given = next(stream)
                row += ids
                weight += given
            rows.append(row[:length])
            weights.append(weight[:length])
        yield torch.tensor(rows), torch.tensor(weights)
