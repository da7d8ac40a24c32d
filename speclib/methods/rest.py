"""REST: retrieval-based speculative decoding: what followed elsewhere is drafted; no draft runs."""

from collections import Counter

from speclib.core.sampling import ids
from speclib.core.verification import follow, offer
from speclib.errors import SpeclibError


def rest(world, longest: int = 16, length: int = 10, nodes: int = 64):
    """The longest end of the text, of at most ``longest`` tokens, that the world's datastore has is
    looked up there; the ``length`` tokens after each of its places form a tree, of which the
    ``nodes`` nodes that most places share are scored in one pass. The target's own draws decide
    how far the tree is followed. Without a datastore the text itself is what there is.

    Source: He et al. 2024, "REST: Retrieval-Based Speculative Decoding", section 3; the published
    code, whose defaults these are.
    Differences from the paper: of very many places evenly chosen ones count, there the first 5,000
    in alphabetical order; an end of one token counts, there of two or more; where nothing is found
    nothing is drafted, there an arbitrary token. The rule is the paper's: a token passes if
    it is the one drawn. Sampling, the published code draws anew for every branch that leads through
    a node, which prefers what branches carry and is not lossless; here each node draws once. The
    cache keeps the heaviest branch's tokens only: others that pass are fed again.
    """
    for name, value in (("longest", longest), ("length", length), ("nodes", nodes)):
        if value < 1:
            raise SpeclibError(f"{name} is {value}: give at least 1")
    after = _in_text if world.datastore is None else world.datastore.after
    while world.going:
        weight = Counter(
            path[:end]
            for path in after(world.text, longest, length)
            for end in range(1, len(path) + 1)
        )
        heavy = sorted(weight, key=lambda path: (-weight[path], len(path), path))[
            :nodes
        ]
        draft, parents = offer(world, _depth_first(heavy, weight))
        rows = world.wait(world.target.tree(world.text, ids(draft), parents))
        world.commit(follow(world, draft, parents, rows).tokens)


def _depth_first(paths, weight):
    """``paths`` in the order in which the heaviest branch comes first, whole."""
    return sorted(
        paths,
        key=lambda path: [
            (-weight[path[:end]], path[end - 1]) for end in range(1, len(path) + 1)
        ],
    )


def _in_text(text, longest: int, length: int) -> list[tuple[int, ...]]:
    """As ``Datastore.after``, of earlier places in the text itself."""
    for size in range(min(longest, len(text) - 1), 0, -1):
        found = [
            text[start + size : start + size + length]
            for start in range(len(text) - size)
            if text[start : start + size] == text[-size:]
        ]
        if found:
            return found
    return []
