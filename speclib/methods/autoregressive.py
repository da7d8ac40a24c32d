"""Plain decoding: one target forward pass per token. The baseline, and the truth."""

from speclib.core.verification import verify


def autoregressive(world):
    """Every committed token is drawn from the target's own distribution.

    All other methods must equal this one: token for token when greedy, in distribution when
    sampling. The draft's device idles.
    """
    while world.going:
        rows = world.wait(world.target.score(world.text))
        world.commit(verify(world, (), rows).tokens)
