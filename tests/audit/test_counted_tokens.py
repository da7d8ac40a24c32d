"""The tokens that DuoDecoding's published loop counts, against every text by itself."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest
from helpers.audit_items import values_of_run

from speclab.audit.runs import run_experiment
from speclib.errors import SpeclibError


class Counts(NamedTuple):
    """What the published loop counts in one text."""

    counted: int
    tested: int
    passes: int


def count_one_text(agrees: tuple[bool, ...], limit: int, length: int) -> Counts:
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
    return Counts(tested + untested, tested, passes)


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.9])
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

    values = values_of_run(
        "counted tokens", alpha=alpha, tokens=limit, budget=budget, sequences=sequences
    )

    assert values["counted tokens"] == pytest.approx(counted)
    assert values["tested tokens"] == pytest.approx(tested)
    assert values["target passes"] == pytest.approx(passes)
    assert values["counted over tested"] == pytest.approx(counted / tested)


def test_two_tokens_by_hand():
    """The first round gives one token. The second drafts two, of which it tests one.

    That one is right every second time: then three tokens are counted and two tested.
    """
    values = values_of_run("counted tokens", alpha=0.5, tokens=2, budget=2)
    assert values["counted tokens"] == pytest.approx(2.5)
    assert values["tested tokens"] == 2
    assert values["target passes"] == 2


def test_a_draft_that_is_always_right_ends_32_tokens_after_three_passes():
    """1, then 1 + 24, then 1 + 24 + 24 tokens, of which the last 23 are not tested."""
    values = values_of_run("counted tokens", alpha=1.0, tokens=32, budget=24)
    assert values["counted tokens"] == 49
    assert values["tested tokens"] == 26
    assert values["target passes"] == 3


def test_a_draft_that_is_never_right_is_plain_decoding():
    values = values_of_run("counted tokens", alpha=0.0, tokens=32, budget=24)
    assert values["counted tokens a pass"] == values["counted over tested"] == 1


def test_sequences_must_share_the_budget():
    with pytest.raises(SpeclibError, match="5 sequences do not share 24 tokens evenly"):
        values_of_run("counted tokens", alpha=0.5, tokens=32, budget=24, sequences=5)


# -- speculative decoding at its best --------------------------------------------------
def test_the_best_window_is_that_of_the_formula():
    """At 0.637: 1 + a + ... + a^5 over 1 + 5 * 0.143 is Table 1's 1.50 on code."""
    settings = {"target": "Vicuna", "task": "Code"}
    quantities = run_experiment("speculative decoding at its best", 1, settings)
    alpha = quantities["acceptance rate"].value

    def speed(drafts: int) -> float:
        tokens = sum(alpha**drafted for drafted in range(drafts + 1))
        return tokens / (1 + 0.143 * drafts)

    assert quantities["printed"].value == pytest.approx(1.50)
    assert speed(5) == pytest.approx(1.50)
    assert quantities["best window"].value == 3
    assert quantities["at its best window"].value == pytest.approx(speed(3))
    assert speed(3) > max(speed(2), speed(4))


def test_a_task_that_is_not_printed_is_refused():
    settings = {"target": "Vicuna", "task": "Poems"}
    with pytest.raises(SpeclibError, match="no speed-up"):
        run_experiment("speculative decoding at its best", 1, settings)
