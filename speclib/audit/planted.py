"""Mistakes, planted into methods: what each would cost if a program made it.

They are written anew, from what was read in published code or in a printed algorithm.
The exact enumerator walks every outcome of such a method and compares the probability
of every text with the target's own. Which publication has which mistake stands in
``data/audit``. The draft length of PEARL is at least 2 here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speclib.core.candidate_tree import CandidateTree
from speclib.core.sampling import CoinTosser, Drafted, Row, Rows, Tokens, ids
from speclib.core.verification import TEXT, match_tree, offer, verify
from speclib.methods.pearl import next_window, pearl, pearl_without_pre_verify
from speclib.worlds.world import World

Window = tuple[Drafted, ...]


# -- PEARL -----------------------------------------------------------------------------
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


# -- REST ------------------------------------------------------------------------------
CANDIDATES: tuple[Tokens, ...] = ((1,), (2,))  # of one token each, so that hands can do


def tree_with_a_draw_per_branch(world: World) -> None:
    """Candidates of which every branch draws for itself what the target would say.

    The branch that agrees longest with its own draws is kept, and the token after it is
    drawn once more.
    """
    while world.going:
        tree = offer(world, CANDIDATES)
        rows = world.wait(
            world.target.score_tree(world.text, tree.tokens, tree.parents)
        )
        world.commit(_best_branch(world, tree, rows))


def tree_with_a_draw_per_node(world: World) -> None:
    """The same without the mistake: a node's one draw decides, and is written."""
    while world.going:
        tree = offer(world, CANDIDATES)
        rows = world.wait(
            world.target.score_tree(world.text, tree.tokens, tree.parents)
        )
        world.commit(match_tree(world, tree, rows).tokens)


def _best_branch(world: World, tree: CandidateTree, rows: Rows) -> Tokens:
    """What the branch writes that agrees longest with its own draws."""
    best: list[int] = []
    for number, branch in enumerate(_branches(tree)):
        agreed = _agreed_nodes(world, tree, rows, branch, number)
        if len(agreed) > len(best):
            best = agreed

    last_node = best[-1] if best else TEXT
    position = len(world.text) + len(best)
    after = world.coins.choose(rows[last_node + 1], position, "target")
    accepted = tuple(tree.drafted[node].token for node in best)
    return (*accepted, after)


def _branches(tree: CandidateTree) -> list[list[int]]:
    """The nodes of every branch, from the text down to a node without children."""
    branches = []
    for node in range(len(tree.parents)):
        if tree.children(node):
            continue
        branch: list[int] = []
        above = node
        while above != TEXT:
            branch.insert(0, above)
            above = tree.parents[above]
        branches.append(branch)
    return branches


def _agreed_nodes(
    world: World, tree: CandidateTree, rows: Rows, branch: list[int], number: int
) -> list[int]:
    """The beginning of a branch that its own draws agree with.

    Every branch has coins of its own, in every round.
    """
    own_index = 1 + world.round * len(CANDIDATES) + number
    agreed: list[int] = []
    previous = TEXT
    for node in branch:
        position = len(world.text) + len(agreed)
        drawn = world.coins.choose(rows[previous + 1], position, "target", own_index)
        if drawn != tree.drafted[node].token:
            break
        agreed.append(node)
        previous = node
    return agreed


# -- all of them -----------------------------------------------------------------------
class Mistake(NamedTuple):
    """A mistaken method beside the right one, and the settings of both."""

    mistaken: Callable[..., None]
    right: Callable[..., None]
    settings: dict[str, int]


MISTAKES = {
    "untested first draft": Mistake(
        pearl_with_an_untested_first_draft, pearl_without_pre_verify, {"gamma": 2}
    ),
    "repeated coin": Mistake(pearl_with_a_repeated_coin, pearl, {"gamma": 2}),
    "Algorithm 2 as printed": Mistake(algorithm_2_as_printed, pearl, {"gamma": 2}),
    "a draw per branch": Mistake(
        tree_with_a_draw_per_branch, tree_with_a_draw_per_node, {}
    ),
}
