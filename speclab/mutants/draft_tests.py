"""Wrong tests of drafts, to replace ``verify`` in a method.

Each takes the world, the drafts and the target's rows, like ``verify``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from speclib.core.sampling import Drafted, Row, Rows, ids, residual
from speclib.core.verification import (
    ACCEPT,
    Verified,
    beginning_chances,
    beginning_weights,
    verify,
)
from speclib.worlds.world import World

Drafts: TypeAlias = Sequence[Drafted]
TargetRows: TypeAlias = Rows | Sequence[Row]
DraftTest: TypeAlias = Callable[[World, Drafts, TargetRows], Verified]
Method: TypeAlias = Callable[[World, int], None]


def speculative_with(test: DraftTest, new_coins: bool = False) -> Method:
    """Speculative decoding that commits what ``test`` returns.

    ``new_coins``: whether each round drafts with new coins, as the block test requires.
    """

    def run(world: World, gamma: int) -> None:
        while world.going:
            attempt = world.round if new_coins else 0
            drafted = world.wait(world.draft.propose(world.text, gamma, attempt))
            text = world.text + ids(drafted)
            rows = world.wait(world.target.score(text, last=len(drafted)))
            world.commit(test(world, drafted, rows).tokens)

    return run


def pearl_with(test: DraftTest = verify, keeps_window: bool = False) -> Method:
    """PEARL that commits what ``test`` returns.

    ``keeps_window``: whether it keeps the window even after a rejection.
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


# -- tests of one pass -----------------------------------------------------------------
def row_off_by_one(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Tests each draft with the row after it, as in PEARL's printed Algorithm 2."""
    return verify(world, drafted, rows[1:] if len(rows) > 1 else rows)


def greedy_q(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Tests sampled drafts as if the draft model had been certain of them."""
    changed = []
    for draft in drafted:
        certain = np.zeros_like(draft.q)
        certain[draft.token] = 1
        changed.append(draft._replace(q=certain))
    return verify(world, changed, rows)


def first_untested(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Accepts the first draft untested."""
    others = verify(world, drafted[1:], rows[1:])
    return Verified(ids(drafted[:1]) + others.accepted, others.extra)


def all_accepted(world: World, drafted: Drafts, rows: TargetRows) -> Verified:
    """Accepts all drafts untested, and adds no token."""
    return Verified(ids(drafted), ())


def tested_twice_at_one_position(
    world: World, drafted: Drafts, rows: TargetRows
) -> Verified:
    """Tests the first draft, then the others, without a commit in between.

    Both tests use the coins of the position where the text ends.
    """
    first = verify(world, drafted[:1], rows[:1])
    if first.extra:
        return first
    others = verify(world, drafted[1:], rows[1:])
    return Verified(first.accepted + others.accepted, others.extra)


def block_that_stops_at_a_failure(
    world: World, drafted: Drafts, rows: TargetRows
) -> Verified:
    """The block test, ended at the first prefix that its coin rejects.

    A longer prefix might still have been accepted. Each prefix has its own coin here.
    """
    tested = drafted[: len(rows)]
    weights = beginning_weights(tested, rows)
    chances = beginning_chances(weights, tested, rows)
    kept = 0
    for length in range(1, len(tested) + 1):
        outcomes = np.array((chances[length], 1 - chances[length]))
        position = len(world.text) + length
        if world.coins.choose(outcomes, position, "accept", 1 + world.round) != ACCEPT:
            break
        kept = length
    return _with_next_token(world, tested, rows, kept, weights[kept])


def _with_next_token(
    world: World, tested: Drafts, rows: TargetRows, kept: int, weight: float
) -> Verified:
    """The accepted drafts and the next token."""
    accepted = ids(tested[:kept])
    position = len(world.text) + kept
    if kept < len(tested):
        left = residual(weight * rows[kept], tested[kept].q)
        after = world.coins.choose(left, position, "residual", 1 + world.round)
        return Verified(accepted, (after,))
    if len(rows) <= kept:
        return Verified(accepted, ())
    return Verified(accepted, (world.coins.choose(rows[kept], position, "target"),))


# -- tests of a pass during which the next block is drafted ----------------------------
def first_of_next_block_untested(
    world: World, drafted: Drafts, rows: TargetRows
) -> Verified:
    """Accepts, untested, the first token of the block drafted meanwhile."""
    verified = verify(world, drafted, rows[:-1])
    if verified.extra:
        return verified
    accepted = len(verified.accepted)
    return Verified(ids(drafted[: accepted + 1]), ())
