"""A mistake in testing a candidate tree, and the correct test."""

from __future__ import annotations

from speclib.core.candidate_tree import CandidateTree
from speclib.core.sampling import Rows, Tokens
from speclib.core.verification import TEXT, match_tree, offer
from speclib.worlds.world import World

CANDIDATES: tuple[Tokens, ...] = ((1,), (2,))  # one token each, for results by hand


def tree_with_a_draw_per_branch(world: World) -> None:
    """A method that draws the target's tokens separately for each branch of candidates.

    The branch with the longest agreement with its own draws is accepted, and the token
    after it is drawn again.
    """
    while world.going:
        tree = offer(world, CANDIDATES)
        rows = world.wait(
            world.target.score_tree(world.text, tree.tokens, tree.parents)
        )
        world.commit(_best_branch(world, tree, rows))


def tree_with_a_draw_per_node(world: World) -> None:
    """The same without the mistake: one draw per node decides and is written."""
    while world.going:
        tree = offer(world, CANDIDATES)
        rows = world.wait(
            world.target.score_tree(world.text, tree.tokens, tree.parents)
        )
        world.commit(match_tree(world, tree, rows).tokens)


def _best_branch(world: World, tree: CandidateTree, rows: Rows) -> Tokens:
    """The tokens of the branch that agrees longest with its own draws."""
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
    """Every branch: its nodes from the text down to a node without children."""
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
    """The longest prefix of a branch that agrees with the branch's own draws.

    Every branch has its own coins in every round.
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
