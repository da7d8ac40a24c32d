"""SD: speculative decoding, in which draft and target take turns."""

from __future__ import annotations

from speclib.core.sampling import ids
from speclib.core.settings import require_one_of
from speclib.core.verification import LINE_TESTS, drafting_attempt
from speclib.worlds.world import World

from .method_facts import GAMMA, TEST, About


def speculative(world: World, gamma: int, test: str = "ratio") -> None:
    """Drafts ``gamma`` tokens, then tests them all in one target pass.

    The target waits while the draft writes, and the draft waits while the target
    computes gamma + 1 distributions. All drafts before the first rejection are
    committed, and one more token: the rejected draft's replacement, or a bonus from the
    last distribution if all were accepted. So a round commits 1 to gamma + 1 tokens and
    takes gamma * t_draft + t_target.

    ``test``: "ratio" tests draft by draft; "block" tests all together, and on average
    accepts no fewer; "exact" gives plain decoding's own tokens.

    Source: Leviathan et al. 2023, Algorithm 1; PEARL section 2.
    Differences from the paper: none.
    """
    require_one_of("test", test, tuple(LINE_TESTS))
    while world.going:
        attempt = drafting_attempt(test, world.round)
        draft = world.wait(world.draft.propose(world.text, gamma, attempt))
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        world.commit(LINE_TESTS[test](world, draft, rows).tokens)


ABOUT = About(
    name="Speculative decoding",
    labels={**GAMMA, **TEST},
    variants=({}, {"test": "block"}, {"test": "exact"}),
)
