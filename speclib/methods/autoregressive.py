"""Plain decoding: one target pass per token. The baseline for all other methods."""

from __future__ import annotations

from speclib.core.verification import verify
from speclib.worlds.world import World

from .method_facts import About


def autoregressive(world: World) -> None:
    """Draws every token from the target's own distribution.

    The output of all other methods must equal this one's: token for token when greedy,
    in distribution when sampling. The draft's device is idle.
    """
    while world.going:
        rows = world.wait(world.target.score(world.text))
        world.commit(verify(world, (), rows).tokens)  # without drafts, it only draws


ABOUT = About(name="Plain decoding", labels={}, uses_draft=False)
