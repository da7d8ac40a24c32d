"""The baselines' items: what exact walks and the lines that were read give."""

from __future__ import annotations

import pytest

from speclab.audit.judge_items import judge_item
from speclab.audit.load_items import publication

AUDIT = publication("baselines")
ITEMS = {item.id: item for item in AUDIT.items}

VERDICTS = {
    "speculative-lossless": "supported",
    "rest-draw-per-branch": "not supported",
    "rest-lossless": "supported",
    "lookahead-full-match": "not supported",
    "lookahead-lossless": "supported",
    "ouroboros-lossless": "supported",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_walks_and_readings_give_this_verdict(name):
    assert judge_item(ITEMS[name], "", requests=2).verdict == VERDICTS[name]


def test_every_item_has_a_verdict_that_is_expected():
    assert set(ITEMS) == set(VERDICTS)


def test_the_passes_that_are_told_are_those_that_are_found():
    """28 in place of 24, and 48 in place of 46."""
    lines = []
    for finding in judge_item(ITEMS["lookahead-full-match"], "", requests=2).findings:
        if finding.basis == "clock":
            lines.append(finding.lines)
    assert lines == [
        ("passes, ours = 24", "passes, as published = 28"),
        ("passes, ours = 46", "passes, as published = 48"),
    ]
