"""Several ways to decode, in turn on every prompt: speeds and ratios of the same minutes.

Knows only that a contestant answers a prompt with something that has ``tokens`` and ``stats``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from speclib.trace.metrics import total

Contestant = Callable[[object, int], object]  # (prompt, tokens) -> its answer


@dataclass(frozen=True)
class Race:
    """``results[name][repeat]``: what contestant ``name`` answered to each prompt."""

    results: dict[str, list[list]]

    def speeds(self, name: str) -> list[float]:
        """Tokens per second after the first commit, by repeat, over all its prompts."""
        return [
            total(r.stats for r in answers).decode_speed
            for answers in self.results[name]
        ]

    def ratios(self, name: str, over: str) -> list[float]:
        """``name``'s speed over another's, by repeat."""
        return [
            a / b for a, b in zip(self.speeds(name), self.speeds(over), strict=True)
        ]

    def alpha(self, name: str) -> float:
        """Accepted over tested drafts, all repeats together."""
        return total(r.stats for r in self.all(name)).acceptance_rate

    def all(self, name: str) -> list:
        return [r for answers in self.results[name] for r in answers]

    def same(self, name: str, as_: str) -> str:
        """How many outputs equal another contestant's, as in "10 of 10"."""
        equal = [
            a.tokens == b.tokens
            for a, b in zip(self.all(name), self.all(as_), strict=True)
        ]
        return f"{sum(equal)} of {len(equal)}"


def race(
    contestants: dict[str, Contestant], prompts: Sequence, tokens: int, repeats: int = 1
) -> Race:
    """Every contestant on every prompt, ``repeats`` times; who begins changes from prompt to
    prompt, so a machine that slows down slows all of them."""
    names = list(contestants)
    results: dict[str, list[list]] = {
        name: [[] for _ in range(repeats)] for name in names
    }
    for repeat in range(repeats):
        for i, prompt in enumerate(prompts):
            turn = (repeat * len(prompts) + i) % len(names)
            for name in names[turn:] + names[:turn]:
                results[name][repeat].append(contestants[name](prompt, tokens))
    return Race(results)
