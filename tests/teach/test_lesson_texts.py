"""A lesson describes its pictures correctly.

Runs are made as in the lessons, and the sentences come from the lessons.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import speclab
import speclib
from speclab.traces.rounds import window_rounds
from speclib.trace.events import COMMIT

LEARN = Path(__file__).resolve().parents[2] / "notebooks" / "learn"


def cells_of(lesson: str) -> list[dict]:
    (path,) = LEARN.glob(f"{lesson}_*.ipynb")
    return json.loads(path.read_text("utf-8"))["cells"]


def cell_with(lesson: str, words: str) -> dict:
    """Returns the only cell with these words."""
    (cell,) = [cell for cell in cells_of(lesson) if words in source_of(cell)]
    return cell


def source_of(cell: dict) -> str:
    return "".join(cell["source"])


def flowing(text: str) -> str:
    """Returns a text on one line, so that line breaks do not matter."""
    return " ".join(text.split())


# -- lesson 20 -------------------------------------------------------------------------
@pytest.fixture(scope="module")
def runs():
    """The runs of section 2."""
    return speclib.compare(gamma=5, c=5.0, alpha=0.8, tokens=32)


def test_the_round_shown_first_is_the_one_in_the_text(runs):
    text = flowing(source_of(cell_with("20", "Step with the arrow keys, or press")))
    pearl = runs[2]
    assert f"Round {speclab.rounds(pearl).live.step} is shown first" in text
    rounds = window_rounds(pearl.trace)

    fails, passes = rounds[1], rounds[8]
    assert fails.window
    assert fails.outcomes[fails.early] == "rejected"
    assert fails.outcomes.count("discarded") == 4
    assert "neither that draft nor the four after it" in text
    assert "Step on to round 9" in text
    assert set(passes.outcomes[: passes.rows]) == {"accepted"}
    assert passes.window
    assert rounds[9].window == passes.drafted[1:]
    assert len(rounds[9].window) == 4
    assert "The four new drafts after the first" in text


def test_the_step_of_the_caches_shown_first_is_the_one_in_the_text(runs):
    text = flowing(source_of(cell_with("20", "only the draft model loses slots. Why")))
    view = speclab.kv_ribbon(runs[2])
    assert f"Step {view.live.step} is shown first" in text

    stale = {}
    for step in (6, 12, 15):
        moment = view.live.moments[step - 1]
        assert moment.event.op == COMMIT
        kinds = moment.kinds
        stale[step] = [kinds[name].count("stale") > 0 for name in ("draft", "target")]
    assert stale == {6: [True, False], 12: [True, True], 15: [True, False]}

    rounds = window_rounds(runs[2].trace)
    of_6, of_12, of_15 = rounds[1], rounds[3], rounds[4]
    assert of_6.outcomes.index("rejected") == len(of_6.window) > 0
    assert of_12.outcomes.index("rejected") < len(of_12.window)
    assert not of_15.window
