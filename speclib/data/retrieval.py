"""What REST looks up: the places where some tokens occur in a text, by a suffix array.

Knows no method, no model and no random numbers. Our own training text can be written again at any
time, so no datastore is stored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import chain, islice

import numpy as np

END = -1  # follows every document: no place and no continuation crosses it
MOST = 500  # continuations given at once


class Datastore:
    """The ``documents`` (token ids), read and sorted when something is looked up at first."""

    def __init__(self, documents: Iterable[Iterable[int]]):
        self._documents = documents

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        return tuple(
            chain.from_iterable((*document, END) for document in self._documents)
        )

    @cached_property
    def order(self) -> list[int]:
        return sorted_suffixes(self.tokens)

    def after(self, text, longest: int, length: int) -> list[tuple[int, ...]]:
        """Up to ``length`` tokens after every place of the longest end of ``text``, of at most
        ``longest`` tokens, that goes on anywhere; of more than ``MOST`` places evenly chosen ones.
        """
        places, size = range(0), 0
        while size < min(longest, len(text)):
            found = self._places(tuple(text[len(text) - size - 1 :]))
            if not found or self.tokens[self.order[found[-1]] + size + 1] == END:
                break
            places, size = found, size + 1
        few = places[:: -(-len(places) // MOST) or 1]
        return [self._until_end(self.order[place] + size, length) for place in few]

    def _places(self, query: tuple[int, ...]) -> range:
        """Where in ``order`` the suffixes are that begin with ``query``."""

        def begin(at):
            return self.tokens[at : at + len(query)]

        return range(
            bisect_left(self.order, query, key=begin),
            bisect_right(self.order, query, key=begin),
        )

    def _until_end(self, at: int, length: int) -> tuple[int, ...]:
        tokens = self.tokens[at : at + length]
        return tokens[: tokens.index(END)] if END in tokens else tokens


def sorted_suffixes(tokens) -> list[int]:
    """The places of ``tokens`` in the order of what begins there: by prefix doubling.

    Source: Manber and Myers 1993.
    """
    rank, step = np.unique(np.array(tokens, int), return_inverse=True)[1], 1
    while step < len(rank) and rank.max() + 1 < len(rank):
        later = np.append(rank[step:] + 1, np.zeros(step, int))
        rank = np.unique(rank * (len(rank) + 1) + later, return_inverse=True)[1]
        step *= 2
    return np.argsort(rank, kind="stable").tolist()


@cache
def training_text(tokenizer, tasks: int = 2000) -> Datastore:
    """The first ``tasks`` tasks that the embedded target was trained on, as they are tokenised when
    they are asked and answered. The shipped prompts are never among them, but tasks of their kind
    are, in the target's very words: it finds more here than a large model's text finds anywhere."""

    def documents():
        from .training_tasks import corpus  # reads data/corpus when it is imported

        yield from (
            document(tokenizer, task) for task in islice(corpus.tasks(1), tasks)
        )

    return Datastore(documents())


def document(tokenizer, task) -> list[int]:
    """A task's token ids; code, and all where there is no chat template, prompt and answer only."""
    if task.raw or not tokenizer.chat_template:
        first, *more = chain.from_iterable(task.turns)
        return tokenizer.encode(first) + [
            token
            for text in more
            for token in tokenizer.encode(text, add_special_tokens=False)
        ]
    said = [
        {"role": role, "content": text}
        for turn in task.turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    return tokenizer.apply_chat_template(said, tokenize=True, return_dict=False)
