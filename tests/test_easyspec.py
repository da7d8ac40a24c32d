"""EasySpec: tree SD's loop; what calibration does to the draft's cache.

The drafter itself is tested in test_layered.py; here models are exact in every pass.
"""

from __future__ import annotations

import pytest

from speclib.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import Random
from speclib.tokens import Coins, Sampler
from speclib.virtual import Virtual

EASY, TREE = METHODS["easyspec"], METHODS["tree"]


def models(seed: int = 0, draft=Random) -> dict:
    return {"draft": draft(4, seed), "target": Random(4, seed + 9)}


class Layered(Random):
    """Records what the operations tell a layer-parallel drafter, and which pass comes when."""

    def __init__(self, *args):
        self.calls = []
        super().__init__(*args)

    def begin(self, calibrate):
        self.calls.append(("begin", calibrate))

    def level(self, *args):
        self.calls.append("level")
        return super().level(*args)


@pytest.mark.parametrize("sampler", [Sampler(), Sampler(1.0)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("calibrate", [True, False])
def test_with_an_exact_drafter_it_writes_and_tests_what_tree_sd_does(decode, sampler, calibrate):
    for seed in range(5):
        how = dict(sampler=sampler, coins=Coins(seed), gamma=3, width=3)
        tree, wanted = decode(TREE, models(seed), 30, **how)
        text, trace = decode(EASY, models(seed), 30, calibrate=calibrate, **how)
        assert text == tree
        assert [(e.ts, e.op, e.outcome) for e in trace.events] == [
            (e.ts, e.op, e.outcome) for e in wanted.events]


def test_calibrated_the_first_pass_takes_everything_since_the_last_exact_one(decode):
    """It keeps what the last first pass held, and feeds all that was committed since: the accepted
    tokens, and the bonus. Not calibrated, an accepted first candidate stays cached."""
    how = dict(gamma=3, width=2, sampler=Sampler(1.0), prompt=(0, 1))
    for calibrate in (True, False):
        saved = 0
        for seed in range(5):
            _, trace = decode(EASY, models(seed), 40, coins=Coins(seed), calibrate=calibrate, **how)
            grows = [e for e in trace.operations if e.op == "grow"]
            for before, after in zip(grows, grows[1:], strict=False):
                text = before.kept + before.fed - before.last       # its tokens then
                assert after.kept >= text
                saved += after.kept - text
        assert (saved == 0) == calibrate


@pytest.mark.parametrize("calibrate", [True, False])
def test_every_draft_operation_begins_and_then_goes_level_by_level(calibrate):
    world = Virtual(drafted := models(3, Layered), Latency.ratio(3))
    world.begin((0, 1), sampler=Sampler(), coins=Coins(), limit=12)
    EASY(world, 3, 2, calibrate=calibrate)
    rounds = len(world.end().commits)
    assert drafted["draft"].calls == [("begin", calibrate), "level", "level"] * rounds


def test_tree_sd_begins_nothing():
    world = Virtual(drafted := models(3, Layered), Latency.ratio(3))
    world.begin((0, 1), sampler=Sampler(), coins=Coins(), limit=12)
    TREE(world, 3, 2)
    assert set(drafted["draft"].calls) == {"level"}
