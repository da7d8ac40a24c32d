"""PEARL: parallel speculative decoding with adaptive draft length.

Draft and target work at the same time. The target tests the drafts of the previous
round, and one token that is being drafted meanwhile:

    round           1                   2, if d1 passed       3
    draft writes    d1 d2 d3            d4 d5 d6              ...
    target scores   the text            the window d2 d3      ...
    its rows test   d1                  d2 d3, and d4         ...
                    pre-verify          post-verify
"""

from __future__ import annotations

import numpy as np

from speclib.core.sampling import Drafted, Rows, ids
from speclib.core.settings import require_one_of
from speclib.core.verification import LINE_TESTS, Verified, drafting_attempt
from speclib.worlds.world import World

from .method_facts import GAMMA, TEST, About, shows

NO_ROWS: Rows = np.empty((0, 0))  # from an idle target


def pearl(
    world: World, gamma: int, without: str | None = None, test: str = "ratio"
) -> None:
    """Drafts ``gamma`` tokens *while* the target scores what was drafted before.

    ``window`` contains the drafted tokens that still await the target. If it is empty,
    the round is *pre-verify*: the target's row for the bare text tests the first token
    that is being drafted meanwhile. Otherwise it is *post-verify*: the target is fed
    the window, its rows test the window, and its last row tests the first token that is
    being drafted meanwhile.

    A round takes max(gamma * t_draft, t_target) and commits at most gamma tokens. So
    the speed-up over plain decoding is at most c = t_target / t_draft, and the paper's
    gamma is round(c).

    ``without``: "pre-verify" or "post-verify" runs the paper's ablation without it.
    ``test``: "ratio", "block" or "exact", as in ``speculative``.

    Source: Liu et al. 2025, sections 3.2-3.4, Algorithms 1 and 2, Table 9.
    Differences from the paper: Algorithm 2, line 29, computes p_i after x_i, while
    lines 32 and 39 use it for x_i; so x_1, which has passed already, would be tested
    again, and line 40 keeps one token too few. We follow Table 9, where row i tests
    x_(i+1).
    """
    require_one_of("without", without, (None, *ABLATIONS))
    require_one_of("test", test, tuple(LINE_TESTS))
    if without is not None:
        ABLATIONS[without](world, gamma, test)
        return

    window: tuple[Drafted, ...] = ()
    while world.going:
        attempt = drafting_attempt(test, world.round)
        rows, drafted = world.all(
            world.target.score(world.text + ids(window), last=len(window)),
            world.draft.propose(world.text + ids(window), gamma, attempt),
        )
        verified = LINE_TESTS[test](world, window + drafted, rows)
        world.commit(verified.tokens)
        window = next_window(window + drafted, verified)


def next_window(
    drafted: tuple[Drafted, ...], verified: Verified
) -> tuple[Drafted, ...]:
    """The drafts that still await the target; () if the target wrote a token itself."""
    if verified.extra:
        return ()
    return drafted[len(verified.accepted) :]


def pearl_without_pre_verify(world: World, gamma: int, test: str = "ratio") -> None:
    """The ablation in which no token is tested before its block is complete.

    With an empty window the target is idle. Otherwise it skips the last row, which
    would test the first token that is being drafted.

    Source: PEARL section 4.3, Table 4, which name the ablation but give no algorithm.
    Differences from the published code: it never tests x_1; here x_1 is tested in the
    next round.
    """
    window: tuple[Drafted, ...] = ()
    while world.going:
        attempt = drafting_attempt(test, world.round)
        if window:
            all_but_last = window[:-1]
            rows, drafted = world.all(
                world.target.score(
                    world.text + ids(all_but_last), last=len(all_but_last)
                ),
                world.draft.propose(world.text + ids(window), gamma, attempt),
            )
        else:
            rows = NO_ROWS
            drafted = world.wait(world.draft.propose(world.text, gamma, attempt))
        verified = LINE_TESTS[test](world, window + drafted, rows)
        world.commit(verified.tokens)
        window = next_window(window + drafted, verified)


def pearl_without_post_verify(world: World, gamma: int, test: str = "ratio") -> None:
    """The ablation in which the draft is idle while the target scores a window.

    The first token of a block is still tested early. If the whole window passes, the
    last row gives a bonus token.

    Source: PEARL section 4.3, Table 4, which name the ablation but give no algorithm.
    """
    window: tuple[Drafted, ...] = ()
    while world.going:
        attempt = drafting_attempt(test, world.round)
        if window:
            drafted: tuple[Drafted, ...] = ()
            rows = world.wait(
                world.target.score(world.text + ids(window), last=len(window))
            )
        else:
            rows, drafted = world.all(
                world.target.score(world.text),
                world.draft.propose(world.text, gamma, attempt),
            )
        verified = LINE_TESTS[test](world, window + drafted, rows)
        world.commit(verified.tokens)
        window = next_window(window + drafted, verified)


ABLATIONS = {
    "pre-verify": pearl_without_pre_verify,
    "post-verify": pearl_without_post_verify,
}


ABOUT = About(
    name="PEARL",
    labels={**GAMMA, "without": shows("without {}"), **TEST},
    variants=(
        {},
        {"without": "pre-verify"},
        {"without": "post-verify"},
        {"test": "block"},
        {"test": "exact"},
    ),
)
