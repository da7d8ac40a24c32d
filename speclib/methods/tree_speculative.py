"""Tree SD: speculative decoding that offers the target several candidates at every place."""

from speclib.core.sampling import ids
from speclib.core.verification import descend
from speclib.errors import SpeclibError


def tree(world, gamma: int, width: int = 8, budget: int | None = None):
    """The draft grows a tree of ``gamma`` levels, one pass each, at most ``width`` nodes a level
    and ``budget`` in all (see ``Grow``); the target scores it in one pass, a node attending to the
    text and its own path; then the tree is followed from the text as far as candidates pass.

    At a place the candidates x are tried in order: x passes with probability min(1, p(x) / q(x)).
    One that fails is removed: p becomes norm(max(0, p - q)), and the next was drawn from q without
    it. Where none is left the token comes from that p. With ``width`` 1 this is speculative
    decoding. One iteration takes gamma * t_draft + t_target, and commits more as width grows.

    Source: Miao et al. 2024 (SpecInfer); EasySpec, figure 2; removal without
    replacement: Jeon et al. 2024, "Recursive Speculative Decoding"; Yang et al. 2024,
    "Multi-Candidate Speculative Decoding".
    Differences from the papers: candidates are drawn without replacement, not independently; the
    tree's shape is ours (none is given). The caches keep the line of first candidates only: others
    that pass are fed again, in the next pass.
    """
    check(width=width, budget=budget)
    while world.going:
        draft, parents = world.wait(world.draft.grow(world.text, gamma, width, budget))
        rows = world.wait(world.target.tree(world.text, ids(draft), parents))
        world.commit(descend(world, draft, parents, rows).tokens)


def check(**counts: int | None) -> None:
    """Raises SpeclibError for a count below 1, such as of nodes; None is a default."""
    for name, value in counts.items():
        if value is not None and value < 1:
            raise SpeclibError(f"{name} is {value}: give at least 1")
