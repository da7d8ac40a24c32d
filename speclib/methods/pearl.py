"""PEARL: parallel speculative decoding with adaptive draft length."""

from speclib.core.sampling import ids
from speclib.core.verification import verify
from speclib.errors import SpeclibError


def pearl(world, gamma: int, without: str | None = None):
    """The draft proposes ``gamma`` tokens *while* the target scores what was drafted before.

    ``window`` holds the drafted tokens that still await the target. Empty window: *pre-verify*, the
    target's row for the bare text tests the first token being drafted meanwhile. Otherwise
    *post-verify*: the target is fed the window; its rows test the window, and its last row the
    first token being drafted meanwhile. One iteration takes max(gamma * t_draft, t_target), so the
    speed-up over plain decoding is at most c = t_target / t_draft; the paper's gamma is round(c).

    ``without="pre-verify"``: no token is tested before its block is complete, so with an empty
    window the target idles, and the last row is not asked for. ``without="post-verify"``: the
    draft idles while the target scores a window, and when all pass the last row gives a bonus.

    Source: Liu et al. 2025, sections 3.2-3.4, Algorithms 1 and 2, Table 9.
    Differences from the paper: Algorithm 2 line 29 defines p_i after x_i while line 32 tests x_i
    with it, and line 40 loses x_1; the meaning is taken from Table 9 (row i tests x_(i+1)). The
    published ablation without pre-verify never tests x_1; here it is tested in the next step.
    """
    if without not in (None, "pre-verify", "post-verify"):
        raise SpeclibError(
            f"without is {without!r}: give 'pre-verify', 'post-verify' or None"
        )
    window = ()
    while world.going:
        fed = window if without != "pre-verify" else window[:-1]
        drafts = not window or without != "post-verify"
        scores = window or without != "pre-verify"
        checking = (
            [world.target.score(world.text + ids(fed), last=len(fed))] if scores else []
        )
        drafting = (
            [world.draft.propose(world.text + ids(window), gamma)] if drafts else []
        )
        results = world.all(*checking, *drafting)
        rows = results[0] if scores else ()
        drafted = window + (results[-1] if drafts else ())
        accepted, extra = verdict = verify(world, drafted, rows)
        world.commit(verdict.tokens)
        window = () if extra else drafted[len(accepted) :]
