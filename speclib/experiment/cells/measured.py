"""One open world, one prompt: every method in turn, and what two busy devices cost each other.

What the numbers of a measured cell depend on is here and in what this imports. Knows no cache.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

import numpy as np

from speclib.core.sampling import Coins, Sampler
from speclib.data import prompts
from speclib.decoding.decode import Result, decode
from speclib.operations.propose import Propose
from speclib.operations.score import Score

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


def difference(tokens: tuple[int, ...], plain: tuple[int, ...]) -> int | None:
    """The first position at which an output leaves plain decoding's; None if it never does."""
    if tokens == plain:
        return None
    pairs = enumerate(zip(tokens, plain, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(tokens), len(plain)))


def outputs(
    world, found: set[tuple[int, ...]], plain: Result, first: bool
) -> dict[tuple, dict]:
    """What is known of each output besides its run: its ``departure`` from ``plain``; of the first
    prompt's, where draft and target ``agree``. Asked when all runs of the prompt are over."""
    prompt = tuple(plain.trace.meta["prompt"])
    return {
        tokens: departure(world, prompt, tokens, plain.tokens)
        | ({"agree": agreements(world, prompt, tokens)} if first else {})
        for tokens in found
    }


def departure(
    world, prompt: tuple[int, ...], tokens: tuple[int, ...], plain: tuple[int, ...]
) -> dict[str, int | float | None]:
    """Where an output after ``prompt`` first ``differs`` from plain decoding's, and the ``gap``
    there: the target's best logit less its second best, from one pass over the text before. A
    gap near zero is a tie that rounding broke; a wide one would be a wrong token. None: nowhere."""
    at = difference(tokens, plain)
    if at is None:
        return {"differs": None, "gap": None}
    text = (*prompt, *plain[:at])
    world.begin(text, sampler=Sampler(temperature=1.0), coins=Coins(), limit=1)
    best = np.sort(world.wait(world.target.score(text))[-1])[-2:]
    world.end()
    with np.errstate(divide="ignore"):  # a second best of probability 0 is a gap of inf
        return {"differs": at, "gap": float(np.diff(np.log(best))[0])}


def agreements(world, prompt: tuple[int, ...], tokens: tuple[int, ...]) -> list[bool]:
    """Whether draft and target, both greedy, choose the same token, at each place of ``tokens``,
    an output after ``prompt``."""
    text = (*prompt, *tokens[:-1])
    world.begin(text, sampler=Sampler(), coins=Coins(), limit=1)
    rows = world.all(
        *(d.score(text, last=len(tokens) - 1) for d in (world.draft, world.target))
    )
    world.end()
    draft, target = (r.argmax(-1) for r in rows)
    return (draft == target).tolist()


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
