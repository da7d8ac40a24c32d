"""Mistakes in PEARL, read in its published code or in its printed algorithm.

The draft length is at least 2 here.
"""

from __future__ import annotations

from speclib.core.sampling import CoinTosser, Drafted, Row, ids
from speclib.core.verification import verify
from speclib.methods.pearl import next_window
from speclib.worlds.world import World

Window = tuple[Drafted, ...]


def pearl_with_an_untested_first_draft(world: World, gamma: int) -> None:
    """PEARL without pre-verify, in which the first draft of a block is never tested.

    Each rejection starts a block anew. Its first draft is committed at once, and the
    target's row that could test it is not used. The others are tested one round later,
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
    """Tests the window and the first token drafted meanwhile; gives the next window."""
    rows, drafted = world.all(
        world.target.score(world.text + ids(window), last=len(window)),
        world.draft.propose(world.text + ids(window), gamma),
    )
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return next_window(window + drafted, verified)


class RepeatedCoin:
    """Coins of which one place's accept coin is that of the place before."""

    def __init__(self, coins: CoinTosser, place: int):
        self._coins = coins
        self._place = place

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """An outcome of ``dist``; as ``Coins.choose``."""
        if role == "accept" and position == self._place:
            position -= 1
        return self._coins.choose(dist, position, role, index)


def pearl_with_a_repeated_coin(world: World, gamma: int) -> None:
    """PEARL in which the second draft of a block is tested by the first one's coin.

    It happens where the first was tested early, by pre-verify. Every other draft has a
    coin of its own.
    """
    coins = world.coins
    window: Window = ()
    first_has_just_passed = False
    while world.going:
        if first_has_just_passed:
            world.coins = RepeatedCoin(coins, place=len(world.text))
        was_pre_verify = not window
        window = _round_of_pearl(world, window, gamma)
        world.coins = coins
        first_has_just_passed = was_pre_verify and bool(window)


class OtherCoins:
    """Coins that are independent of ``coins``, at the same places."""

    def __init__(self, coins: CoinTosser):
        self._coins = coins

    def choose(self, dist: Row, position: int, role: str, index: int = 0) -> int:
        """An outcome of ``dist``; as ``Coins.choose``."""
        return self._coins.choose(dist, position, role, index + 1)


def algorithm_2_as_printed(world: World, gamma: int) -> None:
    """PEARL's Algorithm 2, line by line, with the rows that its line 29 names.

    In post-verify a draft is tested with the row *after* it, the first one once more.
    """
    coins = world.coins
    block: Window = ()  # drafted and not committed; its first has passed pre-verify
    while world.going:
        rows, drafted = world.all(
            world.target.score(world.text + ids(block), last=len(block)),
            world.draft.propose(world.text + ids(block), gamma),
        )
        if block:  # lines 21 to 42; r_1 ... r_gamma are new coins
            world.coins = OtherCoins(coins)
            verified = verify(world, block, rows[1:])
            world.coins = coins
        else:  # lines 3 to 20; what passes is committed when it has passed twice
            verified = verify(world, drafted[:1], rows)._replace(accepted=())
        world.commit(verified.tokens)
        block = () if verified.extra else drafted
