"""Mistaken tests of drafts, which take the place of ``verify`` in a method.

Each takes the world, the drafts and the target's rows, as ``verify`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from speclib.core.sampling import Drafted, Row, Rows, ids
from speclib.core.verification import Verified, verify
from speclib.worlds.world import World

Drafts: TypeAlias = Sequence[Drafted]
TargetRows: TypeAlias = Rows | Sequence[Row]
DraftTest: TypeAlias = Callable[[World, Drafts, TargetRows], Verified]
Method: TypeAlias = Callable[[World, int], None]


def speculative_with(test: DraftTest) -> Method:
    """Speculative decoding that commits what ``test`` gives."""

    def run(world: World, gamma: int) -> None:
        while world.going:
            drafted = world.wait(world.draft.propose(world.text, gamma))
            text = world.text + ids(drafted)
            rows = world.wait(world.target.score(text, last=len(drafted)))
            world.commit(test(world, drafted, rows).tokens)

    return run


def pearl_with(test: DraftTest = verify, keeps_window: bool = False) -> Method:
    """PEARL that commits what ``test`` gives.

    ``keeps_window``: after a rejection, too.
    """

    def run(world: World, gamma: int) -> None:
        window: tuple[Drafted, ...] = ()
        while world.going:
            rows, drafted = world.all(
                world.target.score(world.text + ids(window), last=len(window)),
                world.draft.propose(world.text + ids(window), gamma),
            )
            verified = test(world, window + drafted, rows)
            world.commit(verified.tokens)
            window = (window + drafted)[len(verified.accepted) :]
            if verified.extra and not keeps_window:
                window = ()

    return run


# -- of one pass -----------------------------------------------------------------------
def row_off_by_one(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Each draft is tested with the row after it, as PEARL's Algorithm 2 is printed."""
    return verify(world, drafted, rows[1:] if len(rows) > 1 else rows)


def greedy_q(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Drafts that were drawn are tested as if the draft had been certain of them."""
    changed = []
    for draft in drafted:
        certain = np.zeros_like(draft.q)
        certain[draft.token] = 1
        changed.append(draft._replace(q=certain))
    return verify(world, changed, rows)


def first_untested(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """The first draft counts as accepted."""
    others = verify(world, drafted[1:], rows[1:])
    return Verified(ids(drafted[:1]) + others.accepted, others.extra)


def all_accepted(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Nothing is tested, and nothing is added."""
    return Verified(ids(drafted), ())


def tested_twice_at_one_position(
    world: World, drafted: Drafts, rows: TargetRows
) -> Verified:
    """The first draft alone, and then the others without a commit in between.

    Both tests take the coins of the position where the text ends.
    """
    first = verify(world, drafted[:1], rows[:1])
    if first.extra:
        return first
    others = verify(world, drafted[1:], rows[1:])
    return Verified(first.accepted + others.accepted, others.extra)


# -- of a pass during which the next block is drafted ----------------------------------
def first_of_next_block_untested(
    world: World, drafted: Drafts, rows: TargetRows
) -> Verified:
    """The first token of the block that is drafted meanwhile counts as accepted."""
    verified = verify(world, drafted, rows[:-1])
    if verified.extra:
        return verified
    accepted = len(verified.accepted)
    return Verified(ids(drafted[: accepted + 1]), ())
