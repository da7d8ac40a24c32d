"""Mistakes, planted into methods: what each would cost if a program made it.

They are written anew, from what was read in published code or in a printed algorithm.
The exact enumerator walks every outcome of such a method and compares the probability
of every text with the target's own. Which publication has which mistake stands in
``data/audit``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speclib.methods.pearl import pearl, pearl_without_pre_verify
from speclib.methods.speculative import speculative

from .easyspec_mistakes import easyspec_algorithm_3_as_printed
from .lookahead_as_published import lookahead_as_published
from .pearl_mistakes import (
    algorithm_2_as_printed,
    pearl_with_a_repeated_coin,
    pearl_with_an_untested_first_draft,
)
from .tree_mistakes import tree_with_a_draw_per_branch, tree_with_a_draw_per_node


class Mistake(NamedTuple):
    """A mistaken method beside the right one, and the settings of both."""

    mistaken: Callable[..., None]
    right: Callable[..., None]
    settings: dict[str, int]


MISTAKES = {
    "untested first draft": Mistake(
        pearl_with_an_untested_first_draft, pearl_without_pre_verify, {"gamma": 2}
    ),
    "repeated coin": Mistake(pearl_with_a_repeated_coin, pearl, {"gamma": 2}),
    "Algorithm 2 as printed": Mistake(algorithm_2_as_printed, pearl, {"gamma": 2}),
    "EasySpec's Algorithm 3 as printed": Mistake(
        easyspec_algorithm_3_as_printed, speculative, {"gamma": 2}
    ),
    "a draw per branch": Mistake(
        tree_with_a_draw_per_branch, tree_with_a_draw_per_node, {}
    ),
}

# Methods with what their published code does otherwise, by the method's name. They give
# the target's own texts, in other passes.
AS_PUBLISHED: dict[str, Callable[..., None]] = {"lookahead": lookahead_as_published}
