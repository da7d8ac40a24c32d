"""EAGLE: tree speculative decoding whose draft is a head on the target's features."""

from __future__ import annotations

from speclib.core.candidate_tree import CandidateTree
from speclib.core.features import Features
from speclib.core.settings import require_counts
from speclib.core.verification import verify_tree
from speclib.worlds.world import World

from .method_facts import GAMMA, About, shows

NOTHING_DRAFTED = CandidateTree((), ())


def eagle(world: World, gamma: int, width: int = 10, budget: int = 59) -> None:
    """Drafts a tree from the target's own features, and tests it.

    ``gamma``: how many levels the tree has.
    ``width``: how many nodes of a level are expanded (see ``DraftDynamicTree``).
    ``budget``: how many nodes the tree has.

    A target pass returns not only distributions but also *features* of the tokens that
    it is fed: the inputs of its LM head. The draft is a head with one layer that
    continues from these features (``models/eagle_head.py``)::

        a round    head: ``gamma`` passes   from the features of the text so far
                   target: one pass         tests the tree; features of what it accepts

    So the first round is only a target pass: it reads the prompt, and returns the first
    token and the first features. Later the head gets the features of the last pass; it
    has already read the earlier ones into its KV cache.

    The candidates' q is one-hot: a candidate x is accepted with probability p(x), and
    each candidate that fails is removed from p, which is renormalised. That is lossless
    for any tree that is chosen before the target's coins are read.

    The pair's draft must have ``head = true``; ``decode`` refuses any other. In a world
    that you open yourself, any other draft ignores the features and drafts the same
    kind of tree with its own distributions.

    Source: Li et al. 2024, "EAGLE: Speculative Sampling Requires Rethinking Feature
    Uncertainty", sections 3.1, 3.3; Li et al. 2024, "EAGLE-2: Faster Inference of
    Language Models with Dynamic Draft Trees", section 4. The defaults, including 6 for
    gamma="auto", are from its published script for 70B models.
    Differences from the papers: those of the head are listed in its own module. The
    tree's shape follows the distributions after the sampler (greedy: at temperature 1).
    The KV caches keep only the line of first candidates: any other accepted candidate
    is fed again in the next pass.
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

    Returns the features of the text's last tokens and of the accepted tokens; None if
    the target has no features.
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
