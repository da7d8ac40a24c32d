"""REST's datastore: finds where tokens occur in a text, with a suffix array.

A datastore contains a user's own text files, or the tasks under ``data/datastore``.
This module uses no method, no model and no random numbers.
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
END = -1  # after every document: no occurrence and no continuation crosses it
MOST = 500  # continuations from one look-up


class Datastore:
    """Documents (token ids), read and sorted at the first look-up."""

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
        """The positions in ``tokens``, sorted by the suffixes that start there."""
        return sorted_suffixes(self.tokens)

    def after(
        self, text: Sequence[int], longest: int, length: int
    ) -> list[tuple[int, ...]]:
        """What follows the end of ``text`` wherever that end occurs in the documents.

        It looks up the text's longest suffix, up to ``longest`` tokens, that some
        document continues. Each occurrence yields up to ``length`` tokens. If there are
        more than ``MOST`` occurrences, evenly spaced ones are used.
        """
        occurrences, size = range(0), 0
        while size < min(longest, len(text)):
            longer_end = tuple(text[len(text) - size - 1 :])
            found = self._occurrences(longer_end)
            if not found or not self._is_continued(found, size + 1):
                break
            occurrences, size = found, size + 1

        every_nth = -(-len(occurrences) // MOST) or 1  # rounded up
        continuations = []
        for index in occurrences[::every_nth]:
            start = self.order[index] + size
            continuations.append(self._until_end(start, length))
        return continuations

    def _occurrences(self, query: tuple[int, ...]) -> range:
        """The part of ``order`` whose suffixes begin with ``query``."""

        def beginning(start: int) -> tuple[int, ...]:
            return self.tokens[start : start + len(query)]

        first = bisect_left(self.order, query, key=beginning)
        last = bisect_right(self.order, query, key=beginning)
        return range(first, last)

    def _is_continued(self, occurrences: range, size: int) -> bool:
        """Whether a token follows the first ``size`` tokens at any of ``occurrences``.

        END is the smallest token. So the last occurrence in ``order`` ends a document
        only if all of them do.
        """
        return self.tokens[self.order[occurrences[-1]] + size] != END

    def _until_end(self, start: int, length: int) -> tuple[int, ...]:
        """Up to ``length`` tokens starting at ``start``, within the document."""
        tokens = self.tokens[start : start + length]
        return tokens[: tokens.index(END)] if END in tokens else tokens


def sorted_suffixes(tokens: Sequence[int]) -> list[int]:
    """The positions in ``tokens``, sorted by the suffixes that start there.

    Uses prefix doubling. Source: Manber and Myers 1993.
    """
    # rank[i]: how many different tokens[j : j + step] come before tokens[i : i + step].
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
    """A file, or all files in a folder and its subfolders, sorted by path.

    Hidden files are left out. Raises BadValue if there are no files.
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
            f"datastore is {path!r}, which has no files: give the path of a text file, "
            "or of a folder of text files"
        )
    return files


def own_text(tokenizer: Any, path: str) -> Datastore:
    """A datastore of a user's text files (see ``text_files``), one document each.

    The files are read at the first look-up. Raises BadValue, naming the file, if one is
    not UTF-8 text.
    """
    files = text_files(path)

    def documents() -> Iterator[list[int]]:
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise BadValue(
                    f"{file}, of datastore {path!r}, cannot be read as UTF-8 text "
                    f"({error}): fix it, or move it elsewhere"
                ) from error
            yield tokenizer.encode(text, add_special_tokens=False)

    return Datastore(documents())


# -- our own tasks ---------------------------------------------------------------------
def held_out_text(tokenizer: Any) -> Datastore:
    """About 2,000 tasks of the kinds that the embedded models were trained on.

    The models were not trained on these tasks, and none of them is a shipped prompt.
    They stand in for the datastore of REST's paper, which is public text of the same
    kind as the prompts: The Stack's Python for a code model, and UltraChat's dialogues
    for a chat model.

    They still flatter REST. Our tasks are built from a few templates, so whole
    sentences and loops of an answer occur here with other words in them. On our
    HumanEval prompts and the virtual clock of Llama 2 7&70B, REST is 8.2 times as fast
    as plain decoding with this text, but only 1.5 times as fast with code from the
    standard library, which has no templates.
    """

    def documents() -> Iterator[list[int]]:
        with lzma.open(HELD_OUT_TASKS, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield document(tokenizer, **json.loads(line))

    return Datastore(documents())


def document(tokenizer: Any, turns: list[tuple[str, str]], raw: bool) -> list[int]:
    """The token ids of a task: ``turns`` are pairs of a prompt and its answer.

    A ``raw`` task (code) is tokenised without a chat template, and so is every task if
    the tokenizer has none; all others are chats.
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
    """All texts of a task joined; only the first has a start token."""
    first_text, *further_texts = chain.from_iterable(turns)
    ids: list[int] = tokenizer.encode(first_text)
    for text in further_texts:
        ids = ids + tokenizer.encode(text, add_special_tokens=False)
    return ids
