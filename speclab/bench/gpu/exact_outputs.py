"""Whether a method's greedy output is plain decoding's, and where it leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from speclib.core.sampling import Coins, Sampler, Tokens
from speclib.data.pairs import ModelSpec, Pair
from speclib.decoding.decode import decode
from speclib.methods import METHODS, parameters
from speclib.worlds.world import World

PLAIN = "autoregressive"
WITH_HEAD = "eagle"  # the method that drafts with the target's own head
WITH_OWN_DRAFT = tuple(name for name in METHODS if name not in (PLAIN, WITH_HEAD))

# The methods whose target scores trees. A tree's nodes have other positions than the
# same tokens in a line, so in bfloat16 nothing is promised of their last bits.
WITH_TREES = ("tree", "easyspec", "eagle", "lookahead", "rest", "ouroboros")
IN_A_LINE = tuple(name for name in WITH_OWN_DRAFT if name not in WITH_TREES)

# The counts of methods that take them from c = t_target / t_draft. Measuring it takes
# seconds in each world, and any count is exact.
COUNTS = {"gamma": 4, "lookahead": 4, "servers": 1}


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


def with_own_head(pair: Pair) -> Pair:
    """The pair's target with its EAGLE head as the draft."""
    head = ModelSpec(model=pair.target.model, head=True)
    return pair.model_copy(update={"draft": head})


def counts_of(method: str) -> dict[str, Any]:
    """The ``COUNTS`` that a method has."""
    known = parameters(method)
    return {name: count for name, count in COUNTS.items() if name in known}


def written(
    world: World, method: str, texts: Sequence[Any], tokens: int
) -> list[Tokens]:
    """What a method writes after each of ``texts``, greedily; no end token ends it."""
    outputs = []
    for text in texts:
        answer = decode(
            text,
            world=world,
            method=method,
            max_new_tokens=tokens,
            ignore_eos=True,
            **counts_of(method),
        )
        outputs.append(answer.tokens)
    return outputs


def divergences(
    world: World,
    method: str,
    texts: Sequence[Any],
    plain: Sequence[Tokens],
    tokens: int,
) -> list[Divergence]:
    """Where a method's outputs leave ``plain``, those of plain decoding."""
    found = []
    for number, (text, expected) in enumerate(zip(texts, plain, strict=True)):
        (output,) = written(world, method, [text], tokens)
        if output != expected:
            position = _first_difference(output, expected)
            prompt = world.text[: len(world.text) - len(output)]
            gap = _gap_after(world, prompt + expected[:position])
            found.append(Divergence(number, position, gap))
    return found


def _first_difference(one: Tokens, other: Tokens) -> int:
    """The first position at which they differ; where one ends, if that is first."""
    for position, (token, other_token) in enumerate(zip(one, other, strict=False)):
        if token != other_token:
            return position
    return min(len(one), len(other))


def _gap_after(world: World, text: Tokens) -> float:
    """The difference of the target's two largest logits after ``text``."""
    world.begin(text, sampler=Sampler(1.0), coins=Coins(), limit=1)
    row = world.wait(world.target.score(text))[0]
    world.end()
    second, first = np.sort(row)[-2:]
    return log(first / second) if second else inf
