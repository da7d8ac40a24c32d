"""REST: retrieval-based speculative decoding, without a draft model.

The draft is what followed the text's last tokens elsewhere, in a datastore of texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from speclib.core.sampling import Tokens
from speclib.core.settings import require_counts
from speclib.core.text import AnyText
from speclib.core.verification import match_tree, offer
from speclib.worlds.world import World

from .method_facts import About


def rest(world: World, longest: int = 16, length: int = 10, nodes: int = 64) -> None:
    """Looks up the end of the text in a datastore, and tests what follows it there.

    The method looks up the longest suffix of the text that occurs in the world's
    datastore, up to ``longest`` tokens. The ``length`` tokens after each occurrence
    form a tree. Its ``nodes`` most frequent nodes are scored in one pass, and the
    target's own draws decide how far the tree is followed. Without a datastore, the
    text itself is searched.

    The speed depends on the texts that are searched. A pair can name its own texts as
    ``datastore``. The default texts are tasks from our generators, which flatter REST
    with the embedded models: see ``data.retrieval.held_out_text``.

    Source: He et al. 2024, "REST: Retrieval-Based Speculative Decoding", section 3; the
    published code, which has these defaults.
    Differences from the paper: if there are very many occurrences, evenly spaced ones
    are used; the paper uses the first 5,000 in alphabetical order. A suffix of one
    token counts; in the paper it needs two or more. Without a match nothing is drafted;
    the paper drafts an arbitrary token. The acceptance rule is the paper's: a token is
    accepted if the target draws it. But when sampling, the published code draws again
    for every branch through a node, which prefers tokens that are on branches and is
    not lossless; here each node draws once. The KV cache keeps only the heaviest
    branch's tokens: any other accepted tokens are fed again.
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
    """The ``most`` prefixes that most continuations share, heaviest branch first.

    A path's weight is the number of continuations that begin with it. Its prefixes
    weigh at least as much, so the chosen paths form a tree. The order is depth first:
    branches are not split, and a heavier branch comes before a lighter one.
    """
    weight: Counter[Tokens] = Counter()
    for continuation in continuations:
        for end in range(1, len(continuation) + 1):
            weight[continuation[:end]] += 1

    ranked = sorted(weight, key=lambda path: (-weight[path], len(path), path))

    def depth_first_key(path: Tokens) -> list[tuple[int, int]]:
        """(-weight, token) of every step along the path: sorts depth first."""
        return [(-weight[path[:end]], path[end - 1]) for end in range(1, len(path) + 1)]

    return sorted(ranked[:most], key=depth_first_key)


def after_in_text(text: AnyText, longest: int, length: int) -> list[Tokens]:
    """Like ``Datastore.after``, for earlier occurrences in the text itself."""
    text = tuple(text)  # the fastest to slice
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
