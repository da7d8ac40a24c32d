"""What REST looks up: where some tokens occur in a text, by a suffix array.

A datastore is made of a user's own text files, or of the tasks under
``data/datastore``. Knows no method, no model and no random numbers.
"""

from __future__ import annotations

import json
import lzma
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from speclib.errors import BadValue
from speclib.paths import DATA

HELD_OUT_TASKS = DATA / "datastore" / "tasks.jsonl.xz"
END = -1  # follows every document: no occurrence and no continuation crosses it
MOST = 500  # continuations given at once


class Datastore:
    """Documents (token ids), read and sorted when something is first looked up."""

    def __init__(self, documents: Iterable[Iterable[int]]):
        self._documents = documents

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """All documents one after another, each followed by END."""
        tokens: list[int] = []
        for document in self._documents:
            tokens.extend(document)
            tokens.append(END)
        return tuple(tokens)

    @cached_property
    def order(self) -> list[int]:
        """The positions of ``tokens``, in the order of what begins there."""
        return sorted_suffixes(self.tokens)

    def after(
        self, text: Sequence[int], longest: int, length: int
    ) -> list[tuple[int, ...]]:
        """What follows the end of ``text`` wherever it occurs in the documents.

        The end of the text that is looked up is the longest one, of at most ``longest``
        tokens, after which any document goes on. After each of its occurrences up to
        ``length`` tokens are given; of more than ``MOST``, evenly chosen ones count.
        """
        occurrences, size = range(0), 0
        while size < min(longest, len(text)):
            longer_end = tuple(text[len(text) - size - 1 :])
            found = self._occurrences(longer_end)
            if not found or not self._goes_on(found, size + 1):
                break
            occurrences, size = found, size + 1

        every_nth = -(-len(occurrences) // MOST) or 1  # rounded up
        continuations = []
        for index in occurrences[::every_nth]:
            start = self.order[index] + size
            continuations.append(self._until_end(start, length))
        return continuations

    def _occurrences(self, query: tuple[int, ...]) -> range:
        """Where in ``order`` the suffixes stand that begin with ``query``."""

        def beginning(start: int) -> tuple[int, ...]:
            return self.tokens[start : start + len(query)]

        first = bisect_left(self.order, query, key=beginning)
        last = bisect_right(self.order, query, key=beginning)
        return range(first, last)

    def _goes_on(self, occurrences: range, size: int) -> bool:
        """Whether a token follows ``size`` tokens at any of ``occurrences``.

        END is the smallest token, so the last in order ends a document only if all do.
        """
        return self.tokens[self.order[occurrences[-1]] + size] != END

    def _until_end(self, start: int, length: int) -> tuple[int, ...]:
        """Up to ``length`` tokens from ``start`` on, none of a further document."""
        tokens = self.tokens[start : start + length]
        return tokens[: tokens.index(END)] if END in tokens else tokens


def sorted_suffixes(tokens: Sequence[int]) -> list[int]:
    """The positions of ``tokens`` in the order of what begins there: by prefix
    doubling.

    Source: Manber and Myers 1993.
    """
    # rank[i]: how many of all tokens[j : j + step] come before tokens[i : i + step],
    # where alike ones count as one.
    rank = np.unique(np.array(tokens, int), return_inverse=True)[1]
    step = 1
    while step < len(rank) and rank.max() + 1 < len(rank):
        later = np.append(rank[step:] + 1, np.zeros(step, int))
        rank = np.unique(rank * (len(rank) + 1) + later, return_inverse=True)[1]
        step *= 2
    order: list[int] = np.argsort(rank, kind="stable").tolist()
    return order


# -- a user's own texts ----------------------------------------------------------------
def text_files(path: str) -> list[Path]:
    """A file, or all files of a folder and of those in it, in the order of their names.

    Hidden ones are left out. Raises BadValue where there is none.
    """
    root = Path(path)
    if root.is_file():
        return [root]
    files = []
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        is_hidden = any(part.startswith(".") for part in parts)
        if file.is_file() and not is_hidden:
            files.append(file)
    if not files:
        raise BadValue(
            f"datastore is {path!r}, where no file is: give the path of a text file, "
            "or of a folder of text files"
        )
    return files


def own_text(tokenizer: Any, path: str) -> Datastore:
    """The text files of a user, a document each: as of ``text_files``.

    They are read as plain UTF-8 when something is first looked up. Raises BadValue
    naming the file that is no such text.
    """
    files = text_files(path)

    def documents() -> Iterator[list[int]]:
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise BadValue(
                    f"{file}, of datastore {path!r}, cannot be read as UTF-8 text "
                    f"({error}): mend it, or move it out of there"
                ) from error
            yield tokenizer.encode(text, add_special_tokens=False)

    return Datastore(documents())


# -- text of the embedded models' own kinds --------------------------------------------
def held_out_text(tokenizer: Any) -> Datastore:
    """About 2,000 tasks of the kinds that the embedded models were trained on.

    They were trained on none of these, and none is a shipped prompt. It stands for what
    REST's paper looks up: public text of the kind that is asked for, The Stack's Python
    for a model of code and the dialogues of UltraChat for a model of dialogues.

    It still flatters REST. Our tasks are put together from few templates, so that whole
    sentences and loops of an answer are found here with other words in them. On the
    virtual clock of Llama 2 7&70B REST is 8.2 times as fast as plain decoding on our
    HumanEval with this text, and 1.5 times with code of the standard library, which has
    no templates.
    """

    def documents() -> Iterator[list[int]]:
        with lzma.open(HELD_OUT_TASKS, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield document(tokenizer, **json.loads(line))

    return Datastore(documents())


def document(tokenizer: Any, turns: list[tuple[str, str]], raw: bool) -> list[int]:
    """The token ids of a task: ``turns`` of prompt and answer.

    A ``raw`` task, of code, is written as it is, and so is every task where the
    tokenizer has no chat template; all others are chats.
    """
    if raw or not tokenizer.chat_template:
        return _plain_document(tokenizer, turns)

    messages = []
    for question, answer in turns:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    ids: list[int] = tokenizer.apply_chat_template(
        messages, tokenize=True, return_dict=False
    )
    return ids


def _plain_document(tokenizer: Any, turns: list[tuple[str, str]]) -> list[int]:
    """All texts of a task one after another; only the first has a start token."""
    first_text, *further_texts = chain.from_iterable(turns)
    ids: list[int] = tokenizer.encode(first_text)
    for text in further_texts:
        ids = ids + tokenizer.encode(text, add_special_tokens=False)
    return ids
