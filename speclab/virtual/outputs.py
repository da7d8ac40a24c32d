"""Finds where an output differs from another, and where draft and target agree."""

from __future__ import annotations

from speclib.core.sampling import Coins, Sampler
from speclib.worlds.world import World

Tokens = tuple[int, ...]


def first_difference(output: Tokens, plain_output: Tokens) -> int | None:
    """The first position at which two outputs differ; None if they are equal.

    If one output is a prefix of the other, they differ where it ends.
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
