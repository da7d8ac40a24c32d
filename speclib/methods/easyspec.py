"""EasySpec: tree speculative decoding whose draft runs several of its layers at once."""

from speclib.core.sampling import ids
from speclib.core.verification import descend

from .tree_speculative import check


def easyspec(
    world,
    gamma: int,
    lp: int = 4,
    width: int = 8,
    budget: int | None = None,
    calibrate: bool = True,
):
    """While a large target is spread over many devices, its small draft runs on one and the others
    wait. Here they take part: ``lp`` (N) consecutive layers of the draft are given the *same*
    input, so that their attentions run at once, one on each device; then their MLPs follow in
    order. What comes out is *fuzzy*: near the draft's own, in fewer steps. It may be, since the
    target tests it: q is the fuzzy distribution, and the output is the target's own all the same.

    Errors in the draft's KV cache would add up. *Bonus calibration*: after each verification every
    fuzzy entry is dropped, also of accepted tokens, and one exact pass over them and the bonus
    token rebuilds the cache; that pass yields the first level of the next tree, so it costs no pass
    more. One iteration takes t_draft + (gamma - 1) * t_fuzzy + t_target. ``calibrate=False``: that
    pass is fuzzy too, and what fuzzy passes cached stays.

    So the loop is that of tree SD, word for word: what is new lives inside the draft's forward pass
    (``models.layered``; a pair's ``spread = "layers"`` gives it several devices, any Llama or Qwen
    draft can do it on one, at no gain). With ``lp`` 1 every pass is exact: this is ``tree`` then.

    Source: Wu et al. 2025, sections 3.1, 3.2, Algorithm 2; figure 4 for calibration's effect.
    Differences from the paper: none in the drafter; gamma (5 fits its times, so "auto" is 5), width
    and how a tree is drawn and tested are not stated there: see ``tree``. The authors' code, named
    in data/papers/easyspec/paper.toml, was not looked at.
    """
    check(lp=lp, width=width, budget=budget)
    while world.going:
        draft, parents = world.wait(
            world.draft.grow(world.text, gamma, width, budget, lp, calibrate)
        )
        rows = world.wait(world.target.tree(world.text, ids(draft), parents))
        world.commit(descend(world, draft, parents, rows).tokens)
