"""The contents of KV caches, counted by hand and compared with the models' caches."""

from __future__ import annotations

import pytest

from speclab.traces.caches import cache_moments
from speclib import SpeclibError, simulate
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.methods import METHODS
from speclib.models.toy import Toy
from speclib.trace.events import COMMIT
from speclib.worlds.virtual import Virtual

LINES = {
    "autoregressive": {},
    "speculative": {"gamma": 4},
    "pearl": {"gamma": 4},
    "dsi": {"servers": 2},
    "duodecoding": {"gamma": 4, "k": 1},
    "easyspec": {"gamma": 4, "width": 1, "lp": 3},
}


@pytest.fixture(params=LINES, scope="module")
def trace(request):
    settings = LINES[request.param]
    return simulate(request.param, alpha=0.6, tokens=40, **settings).trace


def test_a_block_is_stale_from_its_first_rejected_draft():
    """The target is fed all four drafts, the draft model all except the last."""
    trace = simulate("speculative", gamma=4, alpha=0.6, tokens=40).trace
    blocks = [event for event in trace.operations if event.is_drafting]
    commits = [m for m in cache_moments(trace) if m.event.op == COMMIT]
    stale_counts = set()
    for block, moment in zip(blocks[:-1], commits[:-1], strict=True):
        accepted = block.outcome.count("accepted")
        stale = {device: kinds.count("stale") for device, kinds in moment.kinds.items()}
        assert stale == {"target": 4 - accepted, "draft": max(0, 3 - accepted)}
        stale_counts.add(stale["target"])
    assert {0, 4} < stale_counts


class Recorded(Virtual):
    """Records the actual contents of the KV cache after each operation."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.held: dict[int, list[int]] = {}  # by operation id

    def _finish(self, future, *arguments, **settings):
        self.held[future.id] = list(self.models[future.device].prefix.fed)
        return super()._finish(future, *arguments, **settings)


def kinds_of_cache(cache: list[int], text: tuple[int, ...]) -> list[str]:
    """Marks slots as exact up to the first difference from the text, then as stale."""
    right = 0
    while right < min(len(cache), len(text)) and cache[right] == text[right]:
        right += 1
    if right == min(len(cache), len(text)):
        return ["exact"] * len(cache)
    return ["exact"] * right + ["stale"] * (len(cache) - right)


@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(
    "method, settings, targets",
    [
        ("autoregressive", {}, 1),
        ("speculative", {"gamma": 3}, 1),
        ("pearl", {"gamma": 4}, 1),
        ("pearl", {"gamma": 2}, 1),
        ("dsi", {"lookahead": 1}, 1),
        ("dsi", {"lookahead": 2}, 3),
        ("dsi", {"lookahead": 4}, 2),
        ("duodecoding", {"gamma": 4, "k": 1}, 1),
        ("easyspec", {"gamma": 4, "width": 1, "lp": 1}, 1),
    ],
)
def test_slots_agree_with_the_models_own_caches(
    method, settings, targets, alpha, cancel
):
    models = {"draft": Toy(alpha, 7, 3), "target": Toy(None, 7, 3)}
    for number in range(2, targets + 1):
        models[f"target-{number}"] = Toy(None, 7, 3)
    world = Recorded(models, Latency.ratio(3.0), cancel=cancel)
    prompt = (1, 2, 3)
    world.begin(prompt, sampler=Sampler(), coins=Coins(5), limit=40, eos=frozenset())
    METHODS[method](world, **settings)
    trace = world.end(method=method, **settings)

    text = prompt
    compared = 0
    for moment in cache_moments(trace):
        event = moment.event
        if event.op == COMMIT:
            text += event.tokens
            assert moment.text_length == len(text)
        else:
            expected = kinds_of_cache(world.held[event.id], text)
            assert list(moment.kinds[event.device]) == expected, event
            compared += 1
    assert compared == len(trace.operations)


def test_only_easyspecs_drafts_are_fuzzy(trace):
    kinds = set()
    for moment in cache_moments(trace):
        for device, kinds_of_slots in moment.kinds.items():
            kinds |= {(device, kind) for kind in kinds_of_slots}
    is_easyspec = trace.meta["method"] == "easyspec"
    assert (("draft", "fuzzy") in kinds) == is_easyspec
    assert ("target", "fuzzy") not in kinds


@pytest.mark.parametrize("calibrate", [True, False])
def test_calibration_drops_the_fuzzy_slots_at_the_end_of_a_block(calibrate):
    """A block of five levels has one exact pass, and feeds four drafts in fuzzy passes.

    Without calibration, only the run's first pass is exact, and slots stay.
    """
    settings = {"gamma": 5, "width": 1, "lp": 3, "calibrate": calibrate}
    trace = simulate("easyspec", alpha=1.0, tokens=30, **settings).trace
    drafting, after = [], []
    for moment in cache_moments(trace):
        fuzzy = moment.kinds["draft"].count("fuzzy")
        if moment.event.is_drafting:
            drafting.append(fuzzy)
        elif moment.event.op == COMMIT:
            after.append(fuzzy)
    if calibrate:
        assert set(drafting[:-1]) == {4}
        assert set(after) == {0}
    else:
        assert drafting[0] == 4
        assert drafting[1] == 4 + 6  # the last draft, the bonus, and four new drafts
        assert after[0] == 4


def test_a_tree_is_refused_with_advice():
    tree = simulate("easyspec", gamma=4, width=3, tokens=20, doubt=1.0).trace
    with pytest.raises(SpeclibError, match="width=1"):
        cache_moments(tree)
    several = simulate("duodecoding", gamma=4, k=2, tokens=20).trace
    with pytest.raises(SpeclibError, match="k=1"):
        cache_moments(several)
    with pytest.raises(SpeclibError, match="another method"):
        cache_moments(simulate("lookahead", tokens=20).trace)
