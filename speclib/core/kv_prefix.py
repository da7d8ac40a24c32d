"""The tokens that a KV cache holds."""

from __future__ import annotations


class Prefix:
    """The tokens a KV cache holds: exactly those fed, in order. ``count``: all ever fed to it."""

    def __init__(self):
        self.fed: list[int] = []
        self.count = 0

    def keep(self, text, last: int = 0) -> int:
        """How many cached tokens serve ``text`` when its last ``last`` + 1 rows are wanted."""
        ours, theirs = self.fed, list(text)
        low, high = 0, min(len(ours), len(theirs) - last - 1)
        same = high  # slices compare at C speed: guess all, then bisect
        while low < high:
            if ours[low:same] == theirs[low:same]:
                low = same
            else:
                high = same - 1
            same = (low + high + 1) // 2
        return low

    def move(self, text, kept: int) -> None:
        """The cache now holds all of ``text``, the first ``kept`` of it from before."""
        self.count += len(text) - kept
        self.fed[kept:] = text[kept:]

    def cut(self, length: int) -> None:
        del self.fed[length:]
