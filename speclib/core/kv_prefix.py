"""Which tokens a KV cache holds, and how much of it a new text can reuse.

Every world counts with this one class, real models and simulated ones alike, so that
all of them charge the same prefill and the same catching up. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence


class Prefix:
    """The tokens in a KV cache: exactly those that were fed, in their order.

    ``fed``: the tokens cached now. ``count``: how many tokens were ever fed.
    """

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.count = 0

    def keep(self, text: Sequence[int], last: int = 0) -> int:
        """How many cached tokens can serve ``text``.

        ``last``: the rows wanted before that of the whole text. A row exists only for
        a token that is fed, so the last ``last`` + 1 tokens of the text never count.
        """
        cached, wanted = self.fed, list(text)
        shortest = 0
        longest = min(len(cached), len(wanted) - last - 1)

        # Nearly always everything up to ``longest`` agrees, so that is tried first.
        # If not, the first difference is found by bisection: comparing slices is fast.
        candidate = longest
        while shortest < longest:
            if cached[shortest:candidate] == wanted[shortest:candidate]:
                shortest = candidate
            else:
                longest = candidate - 1
            candidate = (shortest + longest + 1) // 2
        return shortest

    def move(self, text: Sequence[int], kept: int) -> None:
        """The cache now holds all of ``text``; the first ``kept`` are from before."""
        self.count += len(text) - kept
        self.fed[kept:] = text[kept:]

    def cut(self, length: int) -> None:
        """Forgets all but the first ``length`` tokens."""
        del self.fed[length:]
