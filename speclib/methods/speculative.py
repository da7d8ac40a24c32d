"""SD: speculative decoding, the sequential draft-then-verify loop."""

from speclib.core.sampling import ids
from speclib.core.verification import verify


def speculative(world, gamma: int):
    """The draft proposes ``gamma`` tokens while the target waits; the target scores them in one
    pass over gamma + 1 rows while the draft waits; all that pass are kept, then one more token.

    Commits 1 .. gamma + 1 tokens per iteration: the bonus comes from the last row when every draft
    passes. One iteration takes gamma * t_draft + t_target.

    Source: Leviathan et al. 2023, Algorithm 1; PEARL section 2.
    Differences from the paper: none.
    """
    while world.going:
        draft = world.wait(world.draft.propose(world.text, gamma))
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        world.commit(verify(world, draft, rows).tokens)
