"""Tree SD: speculative decoding with several candidates at every position."""

from __future__ import annotations

from speclib.core.settings import require_counts
from speclib.core.verification import verify_tree
from speclib.worlds.world import World

from .method_facts import GAMMA, About, shows


def tree(world: World, gamma: int, width: int = 8, budget: int | None = None) -> None:
    """Drafts a tree of candidates, scores it in one target pass, and follows it.

    The draft makes a tree of ``gamma`` levels, one pass each, with at most ``width``
    nodes per level and ``budget`` in all (see ``DraftTree``). In the target's pass a
    node attends to the text and to its own path. Then the tree is followed from the
    text as long as candidates are accepted:

        text ──┬── a  failed: p becomes norm(max(0, p - q_a))
               ├── b  accepted ──┬── c  failed
               └── e             └── d  failed: draw the token from the remaining p

    At each position the candidates x are tried in order, and x is accepted with
    probability min(1, p(x) / q(x)). With ``width`` 1 this is speculative decoding. A
    round takes gamma * t_draft + t_target, and commits more tokens as the width rises.

    Source: Miao et al. 2024 (SpecInfer); EasySpec, figure 2; drawing without
    replacement: Jeon et al. 2024, "Recursive Speculative Decoding"; removal after a
    rejection: Yang et al. 2024, "Multi-Candidate Speculative Decoding".
    Differences from the papers: candidates are drawn without replacement, not
    independently; the tree's shape is ours (EasySpec specifies none). The KV caches
    keep only the line of first candidates: any other accepted candidate is fed again in
    the next pass.
    """
    require_counts(width=width, budget=budget)
    while world.going:
        drafted = world.wait(world.draft.draft_tree(world.text, gamma, width, budget))
        rows = world.wait(
            world.target.score_tree(world.text, drafted.tokens, drafted.parents)
        )
        world.commit(verify_tree(world, drafted, rows).tokens)


ABOUT = About(
    name="Tree speculative decoding",
    labels={**GAMMA, "width": shows("width {}")},
    narrow="width=1",
    variants=({"width": 2}, {"width": 3, "budget": 4}),
)
