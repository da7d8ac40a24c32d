"""Whether every method writes what plain decoding writes, in real processes."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any, NamedTuple

import numpy as np

from speclib.bench.rows import BenchRow
from speclib.core.sampling import Coins, Sampler, Tokens
from speclib.data import prompts
from speclib.data.pairs import Pair
from speclib.decoding.decode import decode
from speclib.methods import METHODS
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .setup import Setup

PLAIN = "autoregressive"
WITH_HEAD = "eagle"  # the method that drafts with the target's own head
TASK = "humaneval"
FIXED_ROWS = 16


class Arithmetic(NamedTuple):
    """A number format, and the rows of every pass of the target; None: any number."""

    dtype: str
    fixed_rows: int | None

    def of(self, pair: Pair) -> Pair:
        if self.fixed_rows is None:
            return pair
        return pair.with_fixed_rows(self.fixed_rows)

    def __str__(self) -> str:
        if self.fixed_rows is None:
            return self.dtype
        return f"{self.dtype} in passes of {self.fixed_rows} tokens"


# In bfloat16 with passes of any shape outputs may differ: that is shown, not promised.
PROMISED = (Arithmetic("float32", None), Arithmetic("bfloat16", FIXED_ROWS))
SHOWN = (Arithmetic("bfloat16", None),)


class Divergence(NamedTuple):
    """Where an output leaves plain decoding's: at which token of which prompt.

    ``gap``: how much larger the likeliest token's logit is there than the next one's.
    """

    prompt: int
    token: int
    gap: float

    def __str__(self) -> str:
        return (
            f"prompt {self.prompt} from token {self.token} on, where the two likeliest "
            f"tokens' logits are {self.gap:.2g} apart"
        )


def exactness(setup: Setup) -> Iterator[BenchRow]:
    """For each method the share of prompts on which its greedy output is plain's."""
    with_own_draft = [name for name in METHODS if name not in (PLAIN, WITH_HEAD)]
    for arithmetic in (*PROMISED, *SHOWN):
        yield from _compared(setup, setup.exact_pair(), with_own_draft, arithmetic)
        yield from _compared(setup, setup.head_pair(), [WITH_HEAD], arithmetic)


def _compared(
    setup: Setup, pair: Pair, methods: list[str], arithmetic: Arithmetic
) -> Iterator[BenchRow]:
    """A row for each of ``methods``, all of them in one world."""
    aim = 1.0 if arithmetic in PROMISED else None
    texts = [prompt.input for prompt in prompts.load(TASK, setup.prompts)]
    with Processes(arithmetic.of(pair), dtype=arithmetic.dtype) as world:
        plain = [_written(world, PLAIN, text, setup) for text in texts]
        for method in methods:
            differing = _divergences(world, method, texts, plain, setup)
            yield BenchRow(
                f"outputs that are plain decoding's, {method}, {arithmetic}",
                1 - len(differing) / len(texts),
                "share",
                aim=aim,
                note="; ".join(map(str, differing)),
            )


def _written(world: World, method: str, text: Any, setup: Setup) -> Tokens:
    answer = decode(
        text, world=world, method=method, max_new_tokens=setup.tokens, ignore_eos=True
    )
    return answer.tokens


def _divergences(
    world: World, method: str, texts: list[Any], plain: list[Tokens], setup: Setup
) -> list[Divergence]:
    found = []
    for number, text in enumerate(texts):
        written = _written(world, method, text, setup)
        if written != plain[number]:
            place = _first_difference(written, plain[number])
            prompt = world.text[: len(world.text) - len(written)]
            gap = _gap_after(world, prompt + plain[number][:place])
            found.append(Divergence(number, place, gap))
    return found


def _first_difference(one: Tokens, other: Tokens) -> int:
    for place, (token, other_token) in enumerate(zip(one, other, strict=False)):
        if token != other_token:
            return place
    return min(len(one), len(other))


def _gap_after(world: World, text: Tokens) -> float:
    """The difference of the two largest logits of the target after ``text``."""
    world.begin(text, sampler=Sampler(1.0), coins=Coins(), limit=1)
    row = world.wait(world.target.score(text))[0]
    world.end()
    second, first = np.sort(row)[-2:]
    return log(first / second)
