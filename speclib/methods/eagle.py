"""EAGLE: tree speculative decoding whose draft is a head on the target's features."""

from __future__ import annotations

from speclib.core.candidate_tree import CandidateTree
from speclib.core.features import Features
from speclib.core.settings import require_counts
from speclib.core.verification import verify_tree
from speclib.worlds.world import World

from .page_facts import GAMMA, About, shows

NOTHING_DRAFTED = CandidateTree((), ())


def eagle(world: World, gamma: int, width: int = 10, budget: int = 59) -> None:
    """Drafts a tree from the target's own features, and tests it.

    ``gamma``: how many levels the tree has.
    ``width``: how many nodes of a level are expanded (see ``DraftDynamicTree``).
    ``budget``: how many nodes the tree has.

    The target's pass gives, beside its distributions, the *features* of the tokens that
    it feeds: what its LM head reads. The draft is a head of one layer that goes on with
    them (``models/eagle_head.py``)::

        a round    head: ``gamma`` passes   from the features of the text so far
                   target: one pass         tests the tree; features of what it accepts

    So the first round has a target pass alone: it reads the prompt, and gives the first
    token and the first features. What is handed to the head are the features of the
    last pass; the head has the earlier ones in its KV cache.

    The candidates are certain: at a position, x is accepted with probability p(x), and
    after each that fails, p loses it and is renormalised. That is lossless for any tree
    that is chosen before the target's coins are read.

    A pair's draft has ``head = true`` where it is a head; ``decode`` refuses another.
    In a world of your own any other draft ignores the features, and drafts the same
    kind of tree as the model that it is.

    Source: Li et al. 2024, "EAGLE: Speculative Sampling Requires Rethinking Feature
    Uncertainty", sections 3.1, 3.3; Li et al. 2024, "EAGLE-2: Faster Inference of
    Language Models with Dynamic Draft Trees", section 4; its published script for 70B
    models, whose defaults these are, with gamma ("auto") 6.
    Differences from the papers: the head's, named in its module. The shape of the tree
    rests on rows as the sampler shapes them (greedy: at temperature 1). The caches keep
    the line of first candidates only: others that are accepted are fed again, in the
    next pass.
    """
    require_counts(width=width, budget=budget)
    features = verify_and_commit(world, NOTHING_DRAFTED)
    while world.going:
        drafted = world.wait(
            world.draft.draft_dynamic_tree(world.text, gamma, width, budget, features)
        )
        features = verify_and_commit(world, drafted)


def verify_and_commit(world: World, drafted: CandidateTree) -> Features | None:
    """Tests a tree and commits what is accepted.

    Gives the features of the text's last tokens and of those that were accepted; None
    where the target has none.
    """
    text = world.text
    rows, features = world.wait(
        world.target.score_tree_features(text, drafted.tokens, drafted.parents)
    )
    verified = verify_tree(world, drafted, rows)
    world.commit(verified.tokens)
    if features is None:
        return None
    return features.of_path(len(text), drafted.nodes_of(verified.accepted))


# The draft length is the depth of the trees in EAGLE-2's published script.
ABOUT = About(
    name="EAGLE",
    labels={**GAMMA, "width": shows("width {}")},
    auto_gamma=6,
    needs_head=True,
    variants=({"width": 2, "budget": 5}, {"width": 3, "budget": 4}),
)
