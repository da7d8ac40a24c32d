"""A mistake in the speculative decoding algorithm of EasySpec's appendix."""

from __future__ import annotations

from speclib.core.sampling import ids, residual
from speclib.core.verification import verify
from speclib.worlds.world import World


def easyspec_algorithm_3_as_printed(world: World, gamma: int) -> None:
    """Speculative decoding that replaces a rejected draft using the previous row.

    After n accepted drafts, the replacement comes from the residual of row n, which
    tested the last accepted draft. If no draft was accepted, this row does not exist,
    and we use the right row.
    """
    while world.going:
        draft = world.wait(world.draft.propose(world.text, gamma))
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        verified = verify(world, draft, rows)
        accepted = verified.accepted
        is_rejection = len(accepted) < len(draft)
        if is_rejection and accepted:
            row = len(accepted) - 1  # row n of the listing, which counts from 1
            left = residual(rows[row], draft[row].q)
            position = len(world.text) + len(accepted)
            replacement = world.coins.choose(left, position, "residual", index=1)
            world.commit((*accepted, replacement))
        else:
            world.commit(verified.tokens)
