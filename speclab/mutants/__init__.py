"""Mutants: methods with a planted mistake, which the checks must find.

We wrote each from scratch, after reading published code or a printed algorithm. The
exact enumerator compares the probability of every text with the target's own. The audit
states which publication has which mistake, and what the mistake costs. Lessons
recognise the mistake in a student's method if a mutant behaves the same, and tests show
that the enumerator detects every mutant.

``draft_tests`` contains mistakes in testing drafts, which several methods can make.
``pearl_mistakes``, ``dsi_mistakes``, ``duodecoding_mistakes``, ``easyspec_mistakes``,
``ssd_mistakes`` and ``tree_mistakes`` concern one method each; ``engine_mistakes`` were
found in serving code from 2026. ``other_tosses`` makes coins repeat.
``lookahead_as_published`` is lossless, but its passes differ from our method's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from speclib.core.verification import verify_block
from speclib.methods.pearl import pearl, pearl_without_pre_verify
from speclib.methods.speculative import speculative
from speclib.methods.ssd import ssd

from .draft_tests import (
    block_that_stops_at_a_failure,
    speculative_with,
)
from .easyspec_mistakes import easyspec_algorithm_3_as_printed
from .lookahead_as_published import lookahead_as_published
from .mutant import Mutant
from .pearl_mistakes import (
    algorithm_2_as_printed,
    pearl_with_a_repeated_coin,
    pearl_with_an_untested_first_draft,
)
from .ssd_mistakes import guess_committed, ssd_with
from .tree_mistakes import tree_with_a_draw_per_branch, tree_with_a_draw_per_node

# The door: what other rooms may import. The rest is private to this room.
DOOR = (
    "draft_tests",
    "dsi_mistakes",
    "duodecoding_mistakes",
    "pearl_mistakes",
)

BLOCK = partial(speculative, test="block")
SSD = partial(ssd, fan=1, backup="none")
MUTANTS = {
    "untested first draft": Mutant(
        pearl_with_an_untested_first_draft, pearl_without_pre_verify, {"gamma": 2}
    ),
    "repeated coin": Mutant(pearl_with_a_repeated_coin, pearl, {"gamma": 2}),
    "Algorithm 2 as printed": Mutant(algorithm_2_as_printed, pearl, {"gamma": 2}),
    "EasySpec's Algorithm 3 as printed": Mutant(
        easyspec_algorithm_3_as_printed, speculative, {"gamma": 2}
    ),
    "block test, drafts' coins tossed again": Mutant(
        speculative_with(verify_block), BLOCK, {"gamma": 2}
    ),
    "block test that stops at a failure": Mutant(
        speculative_with(block_that_stops_at_a_failure, new_coins=True),
        BLOCK,
        {"gamma": 2},
    ),
    "SSD's guess in place of the target's token": Mutant(
        ssd_with(guess_committed), SSD, {"gamma": 2}
    ),
    "block test of SSD, drafts' coins tossed again": Mutant(
        ssd_with(test=verify_block, fan=2),
        partial(SSD, fan=2, test="block"),
        {"gamma": 2},
    ),
    "a draw per branch": Mutant(
        tree_with_a_draw_per_branch, tree_with_a_draw_per_node, {}
    ),
}

# Methods that behave like the published code where ours differ from it, by name. They
# write the same texts as ours, in different passes.
AS_PUBLISHED: dict[str, Callable[..., None]] = {"lookahead": lookahead_as_published}
