"""Documents packed into rows of equal length.

Every row starts with a fresh document, so that position 0 is always a beginning. The
document that does not fit is cut at the end of its row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from speclab.training.tasks import code, corpus

from .tokenizer import Document, Writer

LIBRARY_SHARE = 0.03  # of all documents: some real code among the generated one
LIBRARY_CHARACTERS = 1_500_000


def documents(
    writer: Writer, seed: int, weight: dict[str, int] = corpus.WEIGHT
) -> Iterator[Document]:
    """An endless stream of tasks, and now and then a piece of real code.

    weight: how often each category is drawn, as of `corpus.tasks`.
    """
    rng = random.Random(seed + 1)
    tasks = corpus.tasks(seed, weight)
    pieces = code.library(rng, LIBRARY_CHARACTERS)
    while True:
        if rng.random() < LIBRARY_SHARE:
            yield writer.plain(rng.choice(pieces))
        else:
            yield writer.document(next(tasks))


def batches(
    stream: Iterator[Document], size: int, length: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless batches: ids [size, length] int64 and weights [size, length] float32."""
    while True:
        rows = [_row(stream, length) for _ in range(size)]
        ids = torch.tensor([row.ids for row in rows])
        weights = torch.tensor([row.weights for row in rows])
        yield ids, weights


def _row(stream: Iterator[Document], length: int) -> Document:
    """Documents one after the other, cut to `length` tokens."""
    ids: list[int] = []
    weights: list[float] = []
    while len(ids) < length:
        document = next(stream)
        ids += document.ids
        weights += document.weights
    return Document(ids[:length], weights[:length])
