"""Mistakes in PEARL, from its published code, its printed algorithm, and students.

The published mistakes need a draft length of at least 2.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from speclib.core.sampling import Drafted, Rows, ids
from speclib.core.verification import verify
from speclib.methods.pearl import next_window
from speclib.worlds.world import World

from .other_tosses import OtherTosses, Toss

Window = tuple[Drafted, ...]


def pearl_with_an_untested_first_draft(world: World, gamma: int) -> None:
    """PEARL without pre-verify that never tests the first draft of a block.

    A new block starts after each rejection. Its first draft is committed at once,
    without the target's distribution to test it. The others are tested one round later,
    as in PEARL.
    """
    window: Window = ()
    while world.going:
        if window:
            window = _round_of_pearl(world, window, gamma)
        else:
            _, drafted = world.all(
                world.target.score(world.text), world.draft.propose(world.text, gamma)
            )
            world.commit(ids(drafted[:1]))
            window = drafted[1:]


def _round_of_pearl(world: World, window: Window, gamma: int) -> Window:
    """Tests the window and the first new draft. Returns the next window."""
    rows, drafted = _both_asked(world, window, gamma)
    return _tested(world, window + drafted, rows)


def _tested(world: World, drafted: Window, rows: Rows) -> Window:
    """Tests drafts with ``rows``, and commits. Returns the next window."""
    verified = verify(world, drafted, rows)
    world.commit(verified.tokens)
    return next_window(drafted, verified)


def pearl_with_a_repeated_coin(world: World, gamma: int) -> None:
    """PEARL that tests the second draft of a block with the first one's coin.

    This happens if pre-verify has tested the first draft early. Every other draft has
    its own coin.
    """
    coins = world.coins
    window: Window = ()
    first_was_just_accepted = False
    while world.going:
        if first_was_just_accepted:
            position = len(world.text)
            world.coins = OtherTosses(coins, partial(_repeated_at, position=position))
        was_pre_verify = not window
        window = _round_of_pearl(world, window, gamma)
        world.coins = coins
        first_was_just_accepted = was_pre_verify and bool(window)


def _repeated_at(toss: Toss, position: int) -> Toss:
    """The toss, with ``position``'s accept coin replaced by the previous position's."""
    if toss.role == "accept" and toss.position == position:
        return replace(toss, position=position - 1)
    return toss


def algorithm_2_as_printed(world: World, gamma: int) -> None:
    """PEARL's Algorithm 2, line by line, with the rows that its line 29 states.

    In post-verify, each draft is tested with the row *after* it, even the first draft,
    which pre-verify has already tested.
    """
    coins = world.coins
    block: Window = ()  # drafted, not committed; pre-verify accepted the first draft
    while world.going:
        rows, drafted = world.all(
            world.target.score(world.text + ids(block), last=len(block)),
            world.draft.propose(world.text + ids(block), gamma),
        )
        if block:  # lines 21 to 42; r_1 ... r_gamma are new coins
            world.coins = OtherTosses(coins, _independent)
            verified = verify(world, block, rows[1:])
            world.coins = coins
        else:  # lines 3 to 20; an accepted draft is committed after its second test
            verified = verify(world, drafted[:1], rows)._replace(accepted=())
        world.commit(verified.tokens)
        block = () if verified.extra else drafted


def _independent(toss: Toss) -> Toss:
    """Another coin for the same position."""
    return replace(toss, index=toss.index + 1)


# -- rounds, some of them lossless -----------------------------------------------------
# Each function takes the world, the window and gamma, and returns the next window.
def taking_turns(world: World, window: Window, gamma: int) -> Window:
    """A round in which the draft model waits for the end of the target's pass."""
    text = world.text + ids(window)
    rows = world.wait(world.target.score(text, last=len(window)))
    drafted = world.wait(world.draft.propose(text, gamma))
    return _tested(world, window + drafted, rows)


def window_thrown_away(world: World, window: Window, gamma: int) -> Window:
    """A round that passes no draft on to the next one."""
    _round_of_pearl(world, window, gamma)
    return ()


def one_draft_left(world: World, window: Window, gamma: int) -> Window:
    """A round that passes one draft on to the next one."""
    return _round_of_pearl(world, window, gamma)[:1]


def one_draft_more(world: World, window: Window, gamma: int) -> Window:
    """A round that drafts one token too many."""
    return _round_of_pearl(world, window, gamma + 1)


def one_row_more(world: World, window: Window, gamma: int) -> Window:
    """A round whose first row belongs to a position that is already committed."""
    rows, drafted = _both_asked(world, window, gamma, last=len(window) + 1)
    return _tested(world, window + drafted, rows)


def last_forgotten(world: World, window: Window, gamma: int) -> Window:
    """A round that requests only the last row, and tests the first draft with it."""
    rows, drafted = _both_asked(world, window, gamma, last=0)
    return _tested(world, window + drafted, rows)


def window_in_no_text(world: World, window: Window, gamma: int) -> Window:
    """A round in which neither model reads the window."""
    rows, drafted = world.all(
        world.target.score(world.text, last=len(window)),
        world.draft.propose(world.text, gamma),
    )
    return _tested(world, window + drafted, rows)


def all_left(world: World, window: Window, gamma: int) -> Window:
    """A round that also passes on the drafts that it has already committed."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else window + drafted


def new_drafts_tested(world: World, window: Window, gamma: int) -> Window:
    """A round that tests its new drafts with the window's rows."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else drafted[1:]


def new_drafts_committed(world: World, window: Window, gamma: int) -> Window:
    """A round that tests nothing."""
    _rows, drafted = _both_asked(world, window, gamma)
    world.commit(ids(drafted))
    return ()


def accepted_alone(world: World, window: Window, gamma: int) -> Window:
    """A round that does not commit the replacement."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.accepted)
    return next_window(window + drafted, verified)


def extra_alone(world: World, window: Window, gamma: int) -> Window:
    """A round that commits the replacement but no accepted draft."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.extra)
    return next_window(window + drafted, verified)


def others_always_left(world: World, window: Window, gamma: int) -> Window:
    """A round that passes on all new drafts but the first, even after a rejection."""
    rows, drafted = _both_asked(world, window, gamma)
    world.commit(verify(world, window + drafted, rows).tokens)
    return drafted[1:]


def others_left_if_rejected(world: World, window: Window, gamma: int) -> Window:
    """A round that passes on its new drafts only after a rejection."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return drafted[1:] if verified.extra else ()


def rest_left_if_rejected(world: World, window: Window, gamma: int) -> Window:
    """A round that passes on the drafts not accepted, but only after a rejection."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return (window + drafted)[len(verified.accepted) :] if verified.extra else ()


def drafted_after_the_text(world: World, window: Window, gamma: int) -> Window:
    """A round in which the draft model does not read the window that it continues."""
    rows, drafted = world.all(
        world.target.score(world.text + ids(window), last=len(window)),
        world.draft.propose(world.text, gamma),
    )
    return _tested(world, window + drafted, rows)


def new_drafts_left(world: World, window: Window, gamma: int) -> Window:
    """A round that passes on all new drafts, even the first, which has been tested."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else drafted


def new_drafts_always_left(world: World, window: Window, gamma: int) -> Window:
    """The same, even after a rejection."""
    rows, drafted = _both_asked(world, window, gamma)
    world.commit(verify(world, window + drafted, rows).tokens)
    return drafted


def window_tested_alone(world: World, window: Window, gamma: int) -> Window:
    """A round that draws a bonus from the last row and never uses its new drafts."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def window_tested_alone_then_left(world: World, window: Window, gamma: int) -> Window:
    """A round that passes on its new drafts, although the last row yields a bonus."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window, rows)
    world.commit(verified.tokens)
    return drafted if len(verified.accepted) == len(window) else ()


def window_tested_alone_always_left(world: World, window: Window, gamma: int) -> Window:
    """The same, even after a rejection."""
    rows, drafted = _both_asked(world, window, gamma)
    world.commit(verify(world, window, rows).tokens)
    return drafted


def speculative_round(world: World, window: Window, gamma: int) -> Window:
    """A round of speculative decoding: first the drafts, then their test."""
    drafted = world.wait(world.draft.propose(world.text, gamma))
    text = world.text + ids(drafted)
    rows = world.wait(world.target.score(text, last=len(drafted)))
    world.commit(verify(world, drafted, rows).tokens)
    return ()


def _both_asked(
    world: World, window: Window, gamma: int, last: int | None = None
) -> tuple[Rows, Window]:
    """The results of both models, which work in parallel in a round of PEARL.

    ``last``: how many of the window's rows the target returns; None: all.
    """
    text = world.text + ids(window)
    scoring = world.target.score(text, last=len(window) if last is None else last)
    return world.all(scoring, world.draft.propose(text, gamma))
