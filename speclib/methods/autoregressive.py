"""Plain decoding: one target pass per token. The baseline, and the truth."""

from __future__ import annotations

from speclib.core.verification import verify
from speclib.worlds.world import World

from .page_facts import About


def autoregressive(world: World) -> None:
    """Draws every token from the target's own distribution.

    All other methods must equal this one: token for token when greedy, in distribution
    when sampling. The draft's device idles.
    """
    while world.going:
        rows = world.wait(world.target.score(world.text))
        world.commit(verify(world, (), rows).tokens)  # nothing drafted: it only draws


ABOUT = About(name="Plain decoding", labels={}, uses_draft=False)
