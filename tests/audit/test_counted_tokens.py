"""The tokens that DuoDecoding's published loop counts, compared text by text."""

from __future__ import annotations

from itertools import product

import pytest

from speclab.audit.counted_tokens import CountedTokens, CountingLoop, count_tokens


def count_one_text(agrees: tuple[bool, ...], limit: int, length: int) -> CountedTokens:
    """The published loop on a text where the draft is right at these positions.

    A position is one of the text: what is drafted there is right or wrong, whenever it
    is drafted.
    """
    tested = untested = passes = 0
    drafted = 1  # in the first round
    while tested + untested < limit:
        passes += 1
        block = agrees[tested : tested + untested + 1]
        if all(block):
            tested += len(block)
            untested = drafted - 1
        else:
            tested += block.index(False) + 1
            untested = 0
        drafted = length
    return CountedTokens(tested + untested, tested, passes)


@pytest.mark.parametrize("alpha", [0.3, 0.9])
@pytest.mark.parametrize("limit, budget, sequences", [(6, 3, 1), (5, 4, 2), (7, 2, 1)])
def test_the_walk_is_the_mean_over_all_texts(alpha, limit, budget, sequences):
    length = budget // sequences
    counted = tested = passes = 0.0
    for agrees in product((False, True), repeat=limit + length):
        chance = 1.0
        for is_right in agrees:
            chance *= alpha if is_right else 1 - alpha
        counts = count_one_text(agrees, limit, length)
        counted += chance * counts.counted
        tested += chance * counts.tested
        passes += chance * counts.passes

    walked = count_tokens(CountingLoop(alpha, limit, budget, sequences))

    assert walked == pytest.approx((counted, tested, passes))
    assert walked.over_tested == pytest.approx(counted / tested)


def test_a_draft_that_is_always_right_ends_32_tokens_after_three_passes():
    """1, then 1 + 24, then 1 + 24 + 24 tokens, with the last 23 not tested."""
    walked = count_tokens(CountingLoop(1.0, limit=32, budget=24))
    assert walked == (49, 26, 3)


def test_a_draft_that_is_never_right_is_plain_decoding():
    walked = count_tokens(CountingLoop(0.0, limit=32, budget=24))
    assert walked == (32, 32, 32)
