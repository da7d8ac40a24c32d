"""One open world, one prompt: every method in turn, and what two busy devices cost each other.

What the numbers of a measured cell depend on is here and in what this imports. Knows no cache.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from speclib.core.sampling import Coins, Sampler
from speclib.data import prompts
from speclib.decoding.decode import Result, decode
from speclib.operations.propose import Propose
from speclib.operations.score import Score

from .outputs import find_agreements, find_departure

PASSES = 7  # repeats behind each median


class Setting(NamedTuple):
    """A method with its window and settings."""

    method: str
    gamma: int | None
    settings: tuple = ()


def texts(task: str, length: int | None, n: int, tokenizer) -> list:
    """The first ``n`` prompts of a task, as ``decode`` takes them; "toy" is the toys' own. With a
    ``length``, texts of about so many tokens: the prompts one after another, from each one on."""
    if task == "toy":
        return ["toy"] * n
    if length is None:
        return [prompt.input for prompt in prompts.load(task, n)]
    every = [" ".join([p.text or "", *p.turns]) for p in prompts.load(task)]
    whole = ["\n\n".join([*every[i:], *every[:i]]) for i in range(n)]
    return [tokenizer.decode(tokenizer.encode(text)[:length]) for text in whole]


def one(
    world,
    prompt,
    setting: Setting,
    *,
    request: int,
    tokens: int,
    temperature: float,
    seed: int,
    ignore_eos: bool,
) -> Result:
    """One request in an open world."""
    window = {} if setting.gamma is None else {"gamma": setting.gamma}
    return decode(
        prompt,
        world=world,
        method=setting.method,
        max_new_tokens=tokens,
        temperature=temperature,
        seed=seed,
        request=request,
        ignore_eos=ignore_eos,
        **window,
        **dict(setting.settings),
    )


def outputs(
    world, found: set[tuple[int, ...]], plain: Result, first: bool
) -> dict[tuple, dict]:
    """What is known of each output besides its run: its ``departure`` from ``plain``; of the first
    prompt's, where draft and target ``agree``. Asked when all runs of the prompt are over."""
    prompt = tuple(plain.trace.meta["prompt"])
    return {
        tokens: dict(
            zip(
                ("differs", "gap"),
                find_departure(world, prompt, tokens, plain.tokens),
                strict=True,
            )
        )
        | ({"agree": find_agreements(world, prompt, tokens)} if first else {})
        for tokens in found
    }


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
        events = world.end().operations[len(devices) :]  # the first of each prefills
        return {
            name: median(e.dur for e in events if e.device == name) for name in devices
        }

    alone = seconds("target") | seconds("draft")
    both = seconds("target", "draft")
    return {name: round(both[name] / alone[name], 3) for name in both}
