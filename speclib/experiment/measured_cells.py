"""One open world, one prompt: every method in turn, and what two busy devices cost each other.

What the numbers of a measured cell depend on is here and in what this imports. Knows no cache.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ..decoding import Result, decode
from ..operations import Propose, Score
from ..tokens import Coins, Sampler

PASSES = 7                  # repeats behind each median


class Setting(NamedTuple):
    """A method with its window and settings."""

    method: str
    gamma: int | None
    settings: tuple = ()


def one(world, prompt, setting: Setting, *, request: int, tokens: int, temperature: float,
        seed: int) -> Result:
    """One request in an open world."""
    window = {} if setting.gamma is None else {"gamma": setting.gamma}
    return decode(prompt, world=world, method=setting.method, max_new_tokens=tokens,
                  temperature=temperature, seed=seed, request=request, **window,
                  **dict(setting.settings))


def difference(tokens: tuple[int, ...], plain: tuple[int, ...]) -> int | None:
    """The first position at which an output leaves plain decoding's; None if it never does."""
    if tokens == plain:
        return None
    pairs = enumerate(zip(tokens, plain, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(tokens), len(plain)))


def contention(world, length: int = 64) -> dict[str, float]:
    """By device: seconds of a pass while the other device is busy, over seconds alone.

    1 means that draft and target don't slow each other down. Where they share memory bandwidth
    it is more, and every parallel figure of the machine suffers from it.
    """
    def seconds(*devices) -> dict[str, float]:
        world.begin((1,) * length, sampler=Sampler(), coins=Coins(), limit=1)
        asked = {"target": Score((1,) * length), "draft": Propose((1,) * length, 4)}
        for _ in range(PASSES + 1):
            world.all(*(world.submit(name, asked[name]) for name in devices))
        events = world.end().operations[len(devices):]  # the first of each prefills
        return {name: median(e.dur for e in events if e.device == name) for name in devices}

    alone = seconds("target") | seconds("draft")
    both = seconds("target", "draft")
    return {name: round(both[name] / alone[name], 3) for name in both}
