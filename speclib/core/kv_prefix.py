"""Which tokens a KV cache holds, and how much of it a new text can reuse.

All worlds use ``Prefix``, with real and with simulated models, so they all charge the
same prefill and the same catch-up tokens. This module uses no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from .text import Text


class Prefix:
    """The tokens in a KV cache: exactly the tokens that were fed, in order.

    ``fed``: the tokens cached now. ``count``: how many tokens have been fed in all.

    For texts that share a log (see ``core.text``), it remembers how far the log and the
    cache are known to agree, and compares only the rest. So the time of a comparison
    depends on the number of new tokens, not on the text's length. Code that changes
    ``fed`` directly, except by appending, must call ``doubt``.
    """

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.count = 0
        self._log: list[int] | None = None
        self._agreed = 0  # how many tokens at the start of the log and ``fed`` agree

    def keep(self, text: Sequence[int], last: int = 0) -> int:
        """How many cached tokens can be reused for ``text``.

        ``last``: how many rows are wanted in addition to the one after the whole text.
        A token has a row only if it is fed, so the last ``last`` + 1 tokens are never
        reused.
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
        """Notes that all of ``text`` is cached; ``kept`` of its tokens were reused."""
        self.count += len(text) - kept
        self._replace(text, kept, len(text))

    def hold(self, text: Sequence[int], length: int) -> None:
        """Notes that the first ``length`` tokens of ``text`` are cached.

        They do not count as fed.
        """
        self._replace(text, min(self._known_of(text), length), length)

    def cut(self, length: int) -> None:
        """Forgets all tokens but the first ``length``."""
        self.doubt(length)
        del self.fed[length:]

    def doubt(self, length: int) -> None:
        """Notes that only the first ``length`` tokens are certain to be unchanged."""
        self._agreed = min(self._agreed, length)

    def _replace(self, text: Sequence[int], kept: int, length: int) -> None:
        """Keeps ``kept`` tokens, and adds ``text``'s tokens up to ``length``."""
        self.doubt(kept)
        self.fed[kept:] = text[kept:length]
        self._note(text, length)

    def _known_of(self, text: Sequence[int]) -> int:
        """How many tokens at the start of ``text`` are known to be in the cache."""
        if type(text) is Text and text.log is self._log:
            return min(self._agreed, text.shared)
        return 0

    def _note(self, text: Sequence[int], length: int) -> None:
        """Notes that the first ``length`` tokens of ``text`` are in the cache."""
        if type(text) is not Text:
            return
        if text.log is not self._log:
            self._log = text.log
            self._agreed = 0
        self._agreed = max(self._agreed, min(length, text.shared))


def first_difference(cached: Sequence[int], wanted: Sequence[int]) -> int:
    """The first index where two lists of equal length differ; if none, their length.

    Uses bisection, since comparing slices is fast.
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
