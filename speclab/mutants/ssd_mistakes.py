"""Mistakes in how SSD uses a guessed outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from speclib.core.sampling import Drafted, ids
from speclib.core.verification import Verified, verify
from speclib.methods.ssd import look_up
from speclib.operations.fork import Branches
from speclib.worlds.world import World

from .draft_tests import DraftTest, Method

Draft: TypeAlias = tuple[Drafted, ...]


# settle(verified, branches) returns the tokens to commit, and the next window.
Settle: TypeAlias = Callable[[Verified, Branches], tuple[Verified, Draft]]


def looked_up(verified: Verified, branches: Branches) -> tuple[Verified, Draft]:
    """The window that was drafted for this outcome; empty if it was not guessed."""
    return verified, look_up(branches, verified) or ()


def guess_committed(verified: Verified, branches: Branches) -> tuple[Verified, Draft]:
    """Commits the first guess after the accepted drafts, not the target's token."""
    for outcome, window in branches.items():
        if outcome.accepted == len(verified.accepted):
            return Verified(verified.accepted, (outcome.token,)), window
    return verified, ()


def ssd_with(
    settle: Settle = looked_up, test: DraftTest = verify, fan: int = 1
) -> Method:
    """SSD without a backup, whose next window comes from ``settle``.

    The draft at a position uses the same coin in every round.
    """

    def run(world: World, gamma: int) -> None:
        window: Draft = ()
        while world.going:
            text = world.text + ids(window)
            rows, branches = world.all(
                world.target.score(text, last=len(window)),
                world.draft.fork(text, gamma, (fan,) * (len(window) + 1)),
            )
            verified, window = settle(test(world, window, rows), branches)
            world.commit(verified.tokens)

    return run
