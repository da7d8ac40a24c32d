"""A mistake in the printed algorithm of speculative decoding in EasySpec's appendix."""

from __future__ import annotations

from speclib.core.sampling import ids, residual
from speclib.core.verification import verify
from speclib.worlds.world import World


def easyspec_algorithm_3_as_printed(world: World, gamma: int) -> None:
    """Speculative decoding that replaces a rejected draft by the row before.

    After n accepted drafts, the token comes from what is left of row n, which has
    tested the last accepted one. Of no accepted drafts there is no such row; then the
    right one is taken.
    """
    while world.going:
        draft = world.wait(world.draft.propose(world.text, gamma))
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        verified = verify(world, draft, rows)
        accepted = verified.accepted
        is_rejection = len(accepted) < len(draft)
        if is_rejection and accepted:
            row = len(accepted) - 1  # n of the listing, which counts rows from 1
            left = residual(rows[row], draft[row].q)
            position = len(world.text) + len(accepted)
            replacement = world.coins.choose(left, position, "residual", index=1)
            world.commit((*accepted, replacement))
        else:
            world.commit(verified.tokens)
