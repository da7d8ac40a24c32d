"""Which tokens a KV cache holds, and how much of it a new text can reuse.

Every world counts with this one class, real models and simulated ones alike, so that
all of them charge the same prefill and the same catching up. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from .text import Text


class Prefix:
    """The tokens in a KV cache: exactly those that were fed, in their order.

    ``fed``: the tokens cached now. ``count``: how many tokens were ever fed.

    Of texts that share a log (see ``core.text``) it remembers how far the log and the
    cache are known to agree, and compares only what is beyond that. So a match takes as
    long as there are new tokens, however long the text is. Whoever changes ``fed``
    itself, other than by adding to its end, says so with ``doubt``.
    """

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.count = 0
        self._log: list[int] | None = None
        self._agreed = 0  # so many first tokens of the log are the first of ``fed``

    def keep(self, text: Sequence[int], last: int = 0) -> int:
        """How many cached tokens can serve ``text``.

        ``last``: how many rows are wanted before that of the whole text. A row exists
        only for a token that is fed, so the last ``last`` + 1 tokens never count.
        """
        longest = min(len(self.fed), len(text) - last - 1)
        known = self._known_of(text)
        if longest <= known:
            return max(0, longest)

        kept = longest
        cached = self.fed[known:longest]
        wanted = list(text[known:longest])
        if cached != wanted:
            kept = known + first_difference(cached, wanted)
        self._note(text, kept)
        return kept

    def move(self, text: Sequence[int], kept: int) -> None:
        """The cache now holds all of ``text``; the first ``kept`` are from before."""
        self.count += len(text) - kept
        self._replace(text, kept, len(text))

    def hold(self, text: Sequence[int], length: int) -> None:
        """The cache now holds the first ``length`` tokens of ``text``.

        They do not count as fed by this.
        """
        self._replace(text, min(self._known_of(text), length), length)

    def cut(self, length: int) -> None:
        """Forgets all but the first ``length`` tokens."""
        self.doubt(length)
        del self.fed[length:]

    def doubt(self, length: int) -> None:
        """Only the first ``length`` tokens are sure to be what they were."""
        self._agreed = min(self._agreed, length)

    def _replace(self, text: Sequence[int], kept: int, length: int) -> None:
        """Only ``kept`` tokens stay; then come those of ``text``, up to ``length``."""
        self.doubt(kept)
        self.fed[kept:] = text[kept:length]
        self._note(text, length)

    def _known_of(self, text: Sequence[int]) -> int:
        """How many first tokens of ``text`` are known to be the cache's."""
        if type(text) is Text and text.log is self._log:
            return min(self._agreed, text.shared)
        return 0

    def _note(self, text: Sequence[int], length: int) -> None:
        """The first ``length`` tokens of ``text`` are the cache's."""
        if type(text) is not Text:
            return
        if text.log is not self._log:
            self._log = text.log
            self._agreed = 0
        self._agreed = max(self._agreed, min(length, text.shared))


def first_difference(cached: Sequence[int], wanted: Sequence[int]) -> int:
    """The first index at which two lists of one length differ; their length if none.

    By bisection: to compare slices is fast.
    """
    shortest = 0
    longest = len(wanted)
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if cached[shortest:middle] == wanted[shortest:middle]:
            shortest = middle
        else:
            longest = middle - 1
    return shortest
