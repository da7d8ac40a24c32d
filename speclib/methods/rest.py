"""REST: retrieval-based speculative decoding; no draft model runs.

What followed the text's last words elsewhere, in a datastore of texts, is the draft.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from speclib.core.sampling import Tokens
from speclib.core.settings import require_counts
from speclib.core.text import AnyText
from speclib.core.verification import match_tree, offer
from speclib.worlds.world import World

from .page_facts import About


def rest(world: World, longest: int = 16, length: int = 10, nodes: int = 64) -> None:
    """Looks the end of the text up in a datastore, and tests what stands after it
    there.

    The longest end of the text, of at most ``longest`` tokens, that the world's
    datastore has is looked up. The ``length`` tokens after each of its occurrences form
    a tree. Its ``nodes`` most frequent nodes are scored in one pass, and the target's
    own draws decide how far the tree is followed. Without a datastore the text itself
    is what there is.

    How fast it is depends on what is looked up. A pair names texts of its own by
    ``datastore``. Without that they are tasks that our generators make, which flatters
    it with the embedded models: see ``data.retrieval.held_out_text``.

    Source: He et al. 2024, "REST: Retrieval-Based Speculative Decoding", section 3; the
    published code, whose defaults these are.
    Differences from the paper: of very many occurrences evenly chosen ones count, there
    the first 5,000 in alphabetical order. An end of one token counts, there two or
    more.
    Where nothing is found nothing is drafted, there an arbitrary token. The rule is the
    paper's: a token is accepted if it is the one drawn. But when sampling, the
    published code draws anew for every branch that leads through a node, which prefers
    what branches carry and is not lossless; here each node draws once. The cache keeps
    the heaviest branch's tokens only: others that are accepted are fed again.
    """
    require_counts(longest=longest, length=length, nodes=nodes)
    look_up = after_in_text if world.datastore is None else world.datastore.after
    while world.going:
        continuations = look_up(world.text, longest, length)
        tree = offer(world, heaviest_paths(continuations, nodes))
        rows = world.wait(
            world.target.score_tree(world.text, tree.tokens, tree.parents)
        )
        world.commit(match_tree(world, tree, rows).tokens)


def heaviest_paths(continuations: Iterable[Tokens], most: int) -> list[Tokens]:
    """The ``most`` beginnings that most continuations share, the heaviest branch first.

    A path's weight is the number of continuations that begin with it; it never exceeds
    that of the path's own beginnings, so these paths form a tree. The order is
    depth first: each branch stands whole, and a heavier one before a lighter one.
    """
    weight: Counter[Tokens] = Counter()
    for continuation in continuations:
        for end in range(1, len(continuation) + 1):
            weight[continuation[:end]] += 1

    ranked = sorted(weight, key=lambda path: (-weight[path], len(path), path))

    def depth_first_key(path: Tokens) -> list[tuple[int, int]]:
        """(weight, token) of every step on the way: sorts depth first."""
        return [(-weight[path[:end]], path[end - 1]) for end in range(1, len(path) + 1)]

    return sorted(ranked[:most], key=depth_first_key)


def after_in_text(text: AnyText, longest: int, length: int) -> list[Tokens]:
    """As ``Datastore.after``, of earlier occurrences in the text itself."""
    text = tuple(text)  # of which slices are taken fastest
    for size in range(min(longest, len(text) - 1), 0, -1):
        last_tokens = text[-size:]
        continuations = []
        for start in range(len(text) - size):
            end = start + size
            if text[start:end] == last_tokens:
                continuations.append(text[end : end + length])
        if continuations:
            return continuations
    return []


ABOUT = About(
    name="REST",
    variants=({}, {"longest": 1, "length": 3, "nodes": 5}),
    uses_draft=False,
    narrow="nodes=8",
    needs_datastore=True,
)
