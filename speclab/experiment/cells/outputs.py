"""What is known of an output besides its speed.

Where it leaves plain decoding, and why; where draft and target agree. Knows no paper
and no cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from speclib.core.sampling import Coins, Sampler
from speclib.worlds.world import World

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Departure:
    """Where an output first differs from plain decoding's.

    position  None if it never does
    gap       there, the target's best logit less its second best. A gap near zero is a
              tie that rounding broke; a wide one would be a wrong token.
    """

    position: int | None
    gap: float | None


@dataclass(frozen=True)
class OutputFacts:
    """What is known of an output: see ``find_departure`` and ``find_agreements``.

    ``agreements``: None where nobody asked.
    """

    departure: Departure
    agreements: list[bool] | None


def examine_outputs(
    world: World,
    prompt: Tokens,
    outputs: Iterable[Tokens],
    plain_output: Tokens,
    with_agreements: bool,
) -> dict[Tokens, OutputFacts]:
    """Examine each of the outputs that followed ``prompt``."""
    facts = {}
    for output in outputs:
        departure = find_departure(world, prompt, output, plain_output)
        agreements = None
        if with_agreements:
            agreements = find_agreements(world, prompt, output)
        facts[output] = OutputFacts(departure, agreements)
    return facts


def find_departure(
    world: World, prompt: Tokens, output: Tokens, plain_output: Tokens
) -> Departure:
    """Find where ``output`` leaves plain decoding's; the gap costs one target pass."""
    position = first_difference(output, plain_output)
    if position is None:
        return Departure(None, None)

    # The target's distribution at that position, after the text that both share.
    text = (*prompt, *plain_output[:position])
    world.begin(text, sampler=Sampler(temperature=1.0), coins=Coins(), limit=1)
    rows = world.wait(world.target.score(text))
    world.end()

    best_two = np.sort(rows[-1])[-2:]
    with np.errstate(divide="ignore"):  # a second best of probability 0: the gap is inf
        gap = np.diff(np.log(best_two))[0]
    return Departure(position, float(gap))


def first_difference(output: Tokens, plain_output: Tokens) -> int | None:
    """The first position at which two outputs differ; None if they are equal.

    An output that is the beginning of the other differs from it where it ends.
    """
    if output == plain_output:
        return None
    shorter = min(len(output), len(plain_output))
    for position in range(shorter):
        if output[position] != plain_output[position]:
            return position
    return shorter


def find_agreements(world: World, prompt: Tokens, output: Tokens) -> list[bool]:
    """Whether draft and target, both greedy, choose the same token at each position.

    One entry per token of ``output``, which follows ``prompt``.
    """
    text = (*prompt, *output[:-1])
    world.begin(text, sampler=Sampler(), coins=Coins(), limit=1)
    draft_rows, target_rows = world.all(
        world.draft.score(text, last=len(output) - 1),
        world.target.score(text, last=len(output) - 1),
    )
    world.end()
    draft_choices = draft_rows.argmax(-1)
    target_choices = target_rows.argmax(-1)
    agreements: list[bool] = (draft_choices == target_choices).tolist()
    return agreements
