"""Mistakes found in serving code from 2026, and the correct methods.

The methods are small: one draft device, one target, and drafts of a few tokens. So
there are few outcomes to enumerate, and the results can be computed by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from speclib.core.sampling import Drafted, Row, Rows, Tokens, ids, residual
from speclib.core.verification import (
    ACCEPT,
    beginning_weights,
    offer,
    verify,
    verify_tree,
)
from speclib.methods.pearl import next_window
from speclib.worlds.world import World

from .mutant import Mutant

BRANCHES = 2  # candidates at a branch
BLOCK = 3  # drafts tested together; the block test needs at least this many
TINY = 1e-8  # added to a draft probability before dividing by it


# -- drafts ----------------------------------------------------------------------------
def _row_after(world: World, tokens: Tokens) -> Row:
    """The draft's distribution after the text and further tokens."""
    row: Row = world.wait(world.draft.score(world.text + tokens))[0]
    return row


def _best_tokens(world: World, after: Tokens, count: int) -> Tokens:
    """The draft's greedy tokens, regardless of the text's temperature."""
    tokens: Tokens = ()
    for _ in range(count):
        row = _row_after(world, after + tokens)
        tokens += (int(np.argmax(row)),)
    return tokens


def _drawn_with_new_coins(world: World, count: int) -> tuple[Drafted, ...]:
    """Drafts with new coins in every round.

    In a block test, later drafts decide whether earlier ones are accepted. So no draft
    may be redrawn with a coin that has already decided something.
    """
    drafted: tuple[Drafted, ...] = ()
    for _ in range(count):
        row = _row_after(world, ids(drafted))
        position = len(world.text) + len(drafted)
        token = world.coins.choose(row, position, "draft", world.round)
        drafted += (Drafted(token, row),)
    return drafted


# -- the end of a text -----------------------------------------------------------------
def pearl_that_ends_untested(world: World, gamma: int) -> None:
    """PEARL with greedy drafts that writes its last drafts without a test.

    If a whole block was accepted and the next one would complete the text, it writes
    that next block at once.
    """
    _pearl_with_best_tokens(world, gamma, tests_the_end=False)


def pearl_that_tests_to_the_end(world: World, gamma: int) -> None:
    """The same without the mistake: every draft is scored before it is written."""
    _pearl_with_best_tokens(world, gamma, tests_the_end=True)


def _pearl_with_best_tokens(world: World, gamma: int, *, tests_the_end: bool) -> None:
    window: tuple[Drafted, ...] = ()
    while world.going:
        drafted = world.guess(_best_tokens(world, ids(window), gamma))
        rows = world.wait(
            world.target.score(world.text + ids(window), last=len(window))
        )
        was_post_verify = bool(window)
        verified = verify(world, window + drafted, rows)
        world.commit(verified.tokens)
        window = next_window(window + drafted, verified)

        would_fill = world.going and world.left <= len(window)
        if was_post_verify and would_fill and not tests_the_end:
            world.commit(ids(window))


# -- drafts without a model ------------------------------------------------------------
def random_drafts_accepted_by_argmax(world: World, gamma: int) -> None:
    """Accepts random drafts as long as each is the target's likeliest token.

    The token after them is drawn from the target's distribution.
    """
    while world.going:
        drafted = _random_drafts(world, gamma)
        rows = world.wait(
            world.target.score(world.text + ids(drafted), last=len(drafted))
        )
        accepted: Tokens = ()
        for draft, p in zip(drafted, rows, strict=False):
            if draft.token != int(np.argmax(p)):
                break
            accepted += (draft.token,)
        position = len(world.text) + len(accepted)
        after = world.coins.choose(rows[len(accepted)], position, "target")
        world.commit((*accepted, after))


def random_drafts_tested(world: World, gamma: int) -> None:
    """The same without the mistake: random drafts undergo the ratio test."""
    while world.going:
        drafted = _random_drafts(world, gamma)
        rows = world.wait(
            world.target.score(world.text + ids(drafted), last=len(drafted))
        )
        world.commit(verify(world, drafted, rows).tokens)


def _random_drafts(world: World, count: int) -> tuple[Drafted, ...]:
    """Uniformly random tokens, new in every round."""
    alike = np.full(world.vocab, 1 / world.vocab)
    tokens: Tokens = ()
    for index in range(count):
        position = len(world.text) + index
        tokens += (world.coins.choose(alike, position, "draft", world.round),)
    return tuple(guess._replace(q=alike) for guess in world.guess(tokens))


# -- branches --------------------------------------------------------------------------
def branch_chosen_by_the_target(world: World) -> None:
    """Tests only one of the draft's likeliest tokens, the one that the target prefers.

    This token is accepted with probability min(1, p / q), although it was not drawn
    from q. If it is rejected, the token with the largest p - q is written.
    """
    while world.going:
        q = _row_after(world, ())
        p = world.wait(world.target.score(world.text))[0]
        candidates = np.argsort(-q, kind="stable")[:BRANCHES]
        favourite = int(candidates[np.argmax(p[candidates])])

        chance = min(1.0, float(p[favourite]) / (float(q[favourite]) + TINY))
        if _coin_accepts(world, chance, len(world.text)):
            world.commit((favourite,))
        else:
            world.commit((int(np.argmax(residual(p, q))),))


def branches_tested_in_turn(world: World) -> None:
    """The same without the mistake: each branch is tested as if q were 1 for it."""
    while world.going:
        q = _row_after(world, ())
        candidates = np.argsort(-q, kind="stable")[:BRANCHES]
        tree = offer(world, [(int(token),) for token in candidates])
        rows = world.wait(
            world.target.score_tree(world.text, tree.tokens, tree.parents)
        )
        world.commit(verify_tree(world, tree, rows).tokens)


def _coin_accepts(world: World, chance: float, position: int) -> bool:
    """Tosses a coin for this round and this position."""
    outcomes = np.array((chance, 1 - chance))
    outcome = world.coins.choose(outcomes, position, "accept", world.round)
    return outcome == ACCEPT


# -- a block tested as one -------------------------------------------------------------
def block_tested_by_products(world: World, certain: bool = False) -> None:
    """Accepts the longest prefix whose product of ratios exceeds that of its coins.

    The drafts' ratios p / q are multiplied, and the product is capped at 1 after each;
    the coins are multiplied, too. The token after the prefix is drawn from norm(max(0,
    p - q)), as if each draft had been tested alone. ``certain``: whether the drafts are
    the draft model's likeliest tokens, with probability 1 in q.
    """
    while world.going:
        drafted, rows = _block_and_rows(world, certain)
        chances = chances_by_products(beginning_weights(drafted, rows)[1:])
        length = world.coins.choose(chances, len(world.text), "accept", world.round)
        _commit_block(world, drafted, rows, length, weight=1.0)


def block_test(world: World, certain: bool = False) -> None:
    """The same without the mistake.

    Source: Sun et al. 2024, "Block verification accelerates speculative decoding",
    Algorithm 2.
    """
    _block_test(world, row_behind=0, certain=certain)


def block_test_one_row_behind(world: World) -> None:
    """The block test, with the residual mass computed from the previous draft's row."""
    _block_test(world, row_behind=1, certain=False)


def _block_test(world: World, row_behind: int, certain: bool) -> None:
    while world.going:
        drafted, rows = _block_and_rows(world, certain)
        weights = beginning_weights(drafted, rows)
        length = 0
        for tried in range(BLOCK, 0, -1):
            weight = weights[tried]
            chance = weight
            if tried < BLOCK:
                row_number = tried - row_behind
                lacking = weight * rows[row_number] - drafted[row_number].q
                mass = float(np.maximum(lacking, 0).sum())
                chance = mass / (mass + (1 - weight)) if mass > 0 else 0.0
            if _coin_accepts(world, chance, len(world.text) + tried):
                length = tried
                break
        _commit_block(world, drafted, rows, length, weights[length])


def _block_and_rows(world: World, certain: bool) -> tuple[tuple[Drafted, ...], Rows]:
    """A block of drafts, and the target's rows that test it."""
    if certain:
        drafted = world.guess(_best_tokens(world, (), BLOCK))
    else:
        drafted = _drawn_with_new_coins(world, BLOCK)
    rows = world.wait(world.target.score(world.text + ids(drafted), last=len(drafted)))
    return drafted, rows


def _commit_block(
    world: World, drafted: Sequence[Drafted], rows: Rows, length: int, weight: float
) -> None:
    """Writes the accepted prefix, and one more token."""
    position = len(world.text) + length
    if length == len(drafted):
        after = world.coins.choose(rows[length], position, "target")
    else:
        left = residual(weight * rows[length], drafted[length].q)
        after = world.coins.choose(left, position, "residual")
    world.commit((*ids(drafted[:length]), after))


def chances_by_products(bounds: Sequence[float]) -> Row:
    """The probabilities of accepting 0, 1, 2 and 3 drafts with products of coins.

    The test accepts n drafts if n is the largest number for which the product of the
    first n coins is at most ``bounds[n - 1]``. We solve the integrals over three coins
    by hand, because the enumerator's coins choose between outcomes and cannot be
    multiplied.
    """
    first, second, third = bounds
    three = third * (1 - _log(third) + _log(third) ** 2 / 2) if third > 0 else 0.0

    two = 0.0
    if second > third:
        two = _under(second) - _under(third)
        if third > 0:
            two += third / 2 * (_log(second) ** 2 - _log(third) ** 2)

    one = 0.0
    lowest = max(second, third)
    if first > lowest:
        one = first - lowest
        if lowest > 0:
            width = log(first / lowest)
            one -= lowest * width + third * width**2 / 2
    return np.array((max(0.0, 1 - one - two - three), one, two, three))


def _log(number: float) -> float:
    return log(number) if number > 0 else 0.0


def _under(bound: float) -> float:
    """The probability that a product of two coins is at most ``bound``."""
    return bound * (1 - _log(bound))


# -- all of them -----------------------------------------------------------------------
ENGINE_MUTANTS = {
    "untested end": Mutant(
        pearl_that_ends_untested, pearl_that_tests_to_the_end, {"gamma": 2}, 4
    ),
    "random drafts kept": Mutant(
        random_drafts_accepted_by_argmax, random_drafts_tested, {"gamma": 1}, 3
    ),
    "branch by the target": Mutant(
        branch_chosen_by_the_target, branches_tested_in_turn, {}, 3
    ),
    "block by products": Mutant(block_tested_by_products, block_test, {}, 2),
    "block by products, certain drafts": Mutant(
        block_tested_by_products, block_test, {"certain": True}, 3
    ),
    "block one row behind": Mutant(block_test_one_row_behind, block_test, {}, 2),
}
