"""Mistakes in PEARL: read in its published code or printed algorithm, or a student's.

Those that were read take a draft length of 2 or more.
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
    """PEARL without pre-verify, in which the first draft of a block is never tested.

    Each rejection starts a block anew. Its first draft is committed at once, and the
    target's distribution that could test it is not used. The others are tested one
    round later, as in PEARL.
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
    """Tests the window and the first token drafted meanwhile; gives the next window."""
    rows, drafted = _both_asked(world, window, gamma)
    return _tested(world, window + drafted, rows)


def _tested(world: World, drafted: Window, rows: Rows) -> Window:
    """Commits what the rows accept; gives the next window."""
    verified = verify(world, drafted, rows)
    world.commit(verified.tokens)
    return next_window(drafted, verified)


def pearl_with_a_repeated_coin(world: World, gamma: int) -> None:
    """PEARL in which the second draft of a block is tested by the first one's coin.

    It happens where the first was tested early, by pre-verify. Every other draft has a
    coin of its own.
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
    """The accept coin of ``position`` is that of the position before."""
    if toss.role == "accept" and toss.position == position:
        return replace(toss, position=position - 1)
    return toss


def algorithm_2_as_printed(world: World, gamma: int) -> None:
    """PEARL's Algorithm 2, line by line, with the rows that its line 29 names.

    In post-verify a draft is tested with the row *after* it, the first one once more.
    """
    coins = world.coins
    block: Window = ()  # drafted, not committed; pre-verify accepted its first
    while world.going:
        rows, drafted = world.all(
            world.target.score(world.text + ids(block), last=len(block)),
            world.draft.propose(world.text + ids(block), gamma),
        )
        if block:  # lines 21 to 42; r_1 ... r_gamma are new coins
            world.coins = OtherTosses(coins, _independent)
            verified = verify(world, block, rows[1:])
            world.coins = coins
        else:  # lines 3 to 20; what is accepted twice is committed then
            verified = verify(world, drafted[:1], rows)._replace(accepted=())
        world.commit(verified.tokens)
        block = () if verified.extra else drafted


def _independent(toss: Toss) -> Toss:
    """Another coin for the same position."""
    return replace(toss, index=toss.index + 1)


# -- rounds, which lose nothing or fail ------------------------------------------------
# Each takes the world, the window and gamma, and gives the next window.
def taking_turns(world: World, window: Window, gamma: int) -> Window:
    """A round in which the draft model begins when the target's pass has ended."""
    text = world.text + ids(window)
    rows = world.wait(world.target.score(text, last=len(window)))
    drafted = world.wait(world.draft.propose(text, gamma))
    return _tested(world, window + drafted, rows)


def window_thrown_away(world: World, window: Window, gamma: int) -> Window:
    """A round that leaves no draft to the next one."""
    _round_of_pearl(world, window, gamma)
    return ()


def one_draft_left(world: World, window: Window, gamma: int) -> Window:
    """A round that leaves one draft to the next one."""
    return _round_of_pearl(world, window, gamma)[:1]


def one_draft_more(world: World, window: Window, gamma: int) -> Window:
    """A round that drafts for longer than it should."""
    return _round_of_pearl(world, window, gamma + 1)


def one_row_more(world: World, window: Window, gamma: int) -> Window:
    """A round whose first row is of a position that is committed already."""
    rows, drafted = _both_asked(world, window, gamma, last=len(window) + 1)
    return _tested(world, window + drafted, rows)


def last_forgotten(world: World, window: Window, gamma: int) -> Window:
    """A round that asks for the last row alone, and tests the first draft with it."""
    rows, drafted = _both_asked(world, window, gamma, last=0)
    return _tested(world, window + drafted, rows)


def window_in_no_text(world: World, window: Window, gamma: int) -> Window:
    """A round in which neither model reads the window."""
    rows, drafted = world.all(
        world.target.score(world.text, last=len(window)),
        world.draft.propose(world.text, gamma),
    )
    return _tested(world, window + drafted, rows)


def accepted_alone(world: World, window: Window, gamma: int) -> Window:
    """A round that does not commit the replacement."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.accepted)
    return next_window(window + drafted, verified)


def extra_alone(world: World, window: Window, gamma: int) -> Window:
    """A round that commits the replacement, and no accepted draft."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.extra)
    return next_window(window + drafted, verified)


def others_always_left(world: World, window: Window, gamma: int) -> Window:
    """A round that leaves all new drafts but the first, after a rejection, too."""
    rows, drafted = _both_asked(world, window, gamma)
    world.commit(verify(world, window + drafted, rows).tokens)
    return drafted[1:]


def others_left_if_rejected(world: World, window: Window, gamma: int) -> Window:
    """A round that leaves its new drafts after a rejection, and otherwise none."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return drafted[1:] if verified.extra else ()


def rest_left_if_rejected(world: World, window: Window, gamma: int) -> Window:
    """The same, with all drafts that were not accepted."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return (window + drafted)[len(verified.accepted) :] if verified.extra else ()


def drafted_after_the_text(world: World, window: Window, gamma: int) -> Window:
    """A round in which the draft model does not read the window that it goes on."""
    rows, drafted = world.all(
        world.target.score(world.text + ids(window), last=len(window)),
        world.draft.propose(world.text, gamma),
    )
    return _tested(world, window + drafted, rows)


def new_drafts_left(world: World, window: Window, gamma: int) -> Window:
    """A round that leaves its new drafts, also the first, which is tested already."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else drafted


def new_drafts_always_left(world: World, window: Window, gamma: int) -> Window:
    """The same, after a rejection, too."""
    rows, drafted = _both_asked(world, window, gamma)
    world.commit(verify(world, window + drafted, rows).tokens)
    return drafted


def window_tested_alone(world: World, window: Window, gamma: int) -> Window:
    """A round whose last row writes a bonus, so that its drafts are never used."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


def window_tested_alone_then_left(world: World, window: Window, gamma: int) -> Window:
    """A round whose last row writes a bonus; its drafts follow another text."""
    rows, drafted = _both_asked(world, window, gamma)
    verified = verify(world, window, rows)
    world.commit(verified.tokens)
    return drafted if len(verified.accepted) == len(window) else ()


def window_tested_alone_always_left(world: World, window: Window, gamma: int) -> Window:
    """The same, after a rejection, too."""
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
    """What a round of PEARL asks of both models at once.

    ``last``: how many rows of the window the target gives; None: all.
    """
    text = world.text + ids(window)
    scoring = world.target.score(text, last=len(window) if last is None else last)
    return world.all(scoring, world.draft.propose(text, gamma))
