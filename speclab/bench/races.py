"""Races: several contestants take turns on every prompt, to compare their speeds.

A contestant is any function that returns tokens and statistics for a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speclib.decoding.decode import decode
from speclib.trace.metrics import Stats, total
from speclib.worlds.world import World

# A contestant receives a prompt and a number of tokens. Its answer has ``tokens`` and
# ``stats``.
Contestant = Callable[[Any, int], Any]


def contestant(world: World, method: str, **settings: Any) -> Contestant:
    """A method in an open world."""

    def answer(text: Any, tokens: int) -> Any:
        return decode(
            text, world=world, method=method, max_new_tokens=tokens, **settings
        )

    return answer


@dataclass(frozen=True)
class Race:
    """``results[name][repeat]``: a contestant's answers, prompt by prompt."""

    results: dict[str, list[list[Any]]]

    def speeds(self, name: str) -> list[float]:
        """Tokens per second after the first commit, over all prompts of each repeat."""
        speeds = []
        for answers in self.results[name]:
            counts = total(answer.stats for answer in answers)
            speeds.append(counts.decode_speed)
        return speeds

    def ratios(self, name: str, over: str) -> list[float]:
        """A contestant's speed over another's, for each repeat."""
        both = zip(self.speeds(name), self.speeds(over), strict=True)
        return [speed / other_speed for speed, other_speed in both]

    def alpha(self, name: str) -> float:
        """The share of tested drafts that were accepted, over all repeats."""
        counts: Stats = total(answer.stats for answer in self.answers(name))
        return counts.acceptance_rate

    def answers(self, name: str) -> list[Any]:
        """A contestant's answers from all repeats, in order."""
        answers = []
        for repeat in self.results[name]:
            answers.extend(repeat)
        return answers

    def same_outputs(self, name: str, other: str) -> str:
        """How many outputs equal the other contestant's, for example "10 of 10"."""
        both = zip(self.answers(name), self.answers(other), strict=True)
        equal = [answer.tokens == other_answer.tokens for answer, other_answer in both]
        return f"{sum(equal)} of {len(equal)}"


def race(
    contestants: Mapping[str, Contestant],
    prompts: Sequence[Any],
    tokens: int,
    repeats: int = 1,
) -> Race:
    """Lets every contestant decode every prompt, ``repeats`` times.

    The order rotates from prompt to prompt, so if the machine slows down, all
    contestants slow down.
    """
    names = list(contestants)
    results: dict[str, list[list[Any]]] = {}
    for name in names:
        results[name] = [[] for _ in range(repeats)]

    for repeat in range(repeats):
        for number, prompt in enumerate(prompts):
            first = (repeat * len(prompts) + number) % len(names)
            for name in names[first:] + names[:first]:
                answer = contestants[name](prompt, tokens)
                results[name][repeat].append(answer)
    return Race(results)
