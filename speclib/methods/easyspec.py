"""EasySpec: tree speculative decoding whose draft runs several layers at once."""

from __future__ import annotations

from speclib.core.settings import require_bools, require_counts
from speclib.core.verification import verify_tree
from speclib.worlds.world import World

from .method_facts import GAMMA, About, shows


def easyspec(
    world: World,
    gamma: int,
    lp: int = 4,
    width: int = 8,
    budget: int | None = None,
    calibrate: bool = True,
) -> None:
    """Tree SD with a drafter in which up to ``lp`` (N) layers share an input.

    A large target is spread over many devices, but its small draft usually runs on one
    of them while the others wait. Here the others take part: the attentions of ``lp``
    layers run at once, one on each device, and then their MLPs follow in order. The
    result is *fuzzy*: close to the draft's own distribution, in fewer steps. Decoding
    stays lossless, since the target tests against the fuzzy distribution as q.

    *Bonus calibration.* Errors in the draft's KV cache would add up. So after each
    verification every fuzzy entry is dropped, even for accepted tokens, and one exact
    pass over these tokens and the bonus token rebuilds the cache. That pass also drafts
    the first level of the next tree, so no additional pass is needed:

        a round    exact pass | fuzzy pass ... fuzzy pass | target pass
                   t_draft    | (gamma - 1) * t_fuzzy     | t_target

    ``calibrate=False``: the first pass is fuzzy, too, and fuzzy cache entries are kept.

    The loop is exactly that of tree SD. The new part is inside the draft's forward pass
    (``parallel/layer_parallel.py``). A pair's ``spread = "layers"`` gives the draft
    several devices. Any Llama or Qwen draft also works on one device, without a
    speed-up. With ``lp`` 1 every pass is exact, and this is ``tree``.

    Source: Wu et al. 2025, sections 3.1, 3.2, Algorithm 2; Table 6 for which layers
    share an input; figure 4 for calibration's effect.
    Differences from the paper: none in the drafter. The paper does not state gamma (5
    fits its times, so "auto" is 5), the width in the main results, or how a tree is
    drafted and tested: see ``tree``. The authors' code, named in
    data/papers/easyspec/paper.toml, was not consulted.
    """
    require_counts(lp=lp, width=width, budget=budget)
    require_bools(calibrate=calibrate)
    while world.going:
        drafted = world.wait(
            world.draft.draft_tree(world.text, gamma, width, budget, lp, calibrate)
        )
        rows = world.wait(
            world.target.score_tree(world.text, drafted.tokens, drafted.parents)
        )
        world.commit(verify_tree(world, drafted, rows).tokens)


def calibration(calibrate: bool | None) -> str:
    """How a timeline writes ``calibrate``."""
    return "not calibrated" if calibrate is False else ""


# The draft length that fits the paper's times. It is not round(c): c compares exact
# passes, but most of this draft's passes are fuzzy.
ABOUT = About(
    name="EasySpec",
    labels={
        **GAMMA,
        "lp": shows("N = {}"),
        "width": shows("width {}"),
        "calibrate": calibration,
    },
    auto_gamma=5,
    variants=({"width": 2}, {"width": 3, "budget": 4, "lp": 3, "calibrate": False}),
)
