"""If a device raises or is lost, every method ends with an error that names it.

No method ever hangs. Every registered method is tested. Toys are greedy, so nothing is
random.
"""

from __future__ import annotations

import pytest

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.simulate import MortalWorld
from speclib.models.toy import Toy
from speclib.trace.events import Trace
from speclib.worlds.devices import DeviceFailed, DeviceLost
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

WORDS = tuple(range(1, 50))
TOKENS = 24
LATENCY = Latency.ratio(3)  # a target pass takes 3 s, three times a draft's

# These methods continue without a lost drafter, as their docstrings state.
DO_WITHOUT_DRAFTERS = {"dsi"}


class Breaking(Toy):
    """A toy that raises in pass number ``breaks_at`` and in every later one."""

    breaks_at = 0
    passes = 0

    def rows(self, text, last, sampler):
        self.passes += 1
        if self.passes >= self.breaks_at:
            raise ZeroDivisionError("no such pass")
        return super().rows(text, last, sampler)


def toys(breaking: str = "", breaks_at: int = 0) -> dict[str, Toy]:
    """Returns a draft with 90 % agreement and a target; either may break."""
    models = {}
    for name, alpha in (("draft", 0.9), ("target", None)):
        kind = Breaking if name == breaking else Toy
        models[name] = kind(alpha, 50, 0, WORDS, 128)
    if breaking:
        models[breaking].breaks_at = breaks_at
    return models


def write(world: World, case, settings) -> tuple[tuple[int, ...], Trace]:
    """Runs the method in ``world``; returns its output and trace."""
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=TOKENS)
    case.method(world, **settings)
    return world.text[1:], world.end()


@pytest.mark.parametrize("breaks_at", [1, 3])
@pytest.mark.parametrize("device", ["draft", "target"])
def test_a_device_that_raises_ends_every_method_with_its_name_and_the_cause(
    case, device, breaks_at
):
    for settings in case.at(1, 3):
        models = toys(device, breaks_at)
        world = Virtual(models, LATENCY)
        try:
            output, _ = write(world, case, settings)
        except DeviceFailed as error:
            assert str(error).startswith(f"device '{device}' failed in ")
            assert str(error).endswith(": ZeroDivisionError: no such pass")
            assert isinstance(error.__cause__, ZeroDivisionError)
            continue

        # The method ran fewer passes on this device, perhaps none.
        assert models[device].passes < breaks_at, settings
        assert output == WORDS[:TOKENS], settings


@pytest.mark.parametrize("second", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("device", ["draft", "target"])
def test_a_lost_device_ends_every_method_that_needs_it(case, device, second):
    for settings in case.at(1, 3):
        world = MortalWorld(toys(), LATENCY, "immediate", {device: second})
        try:
            output, trace = write(world, case, settings)
        except DeviceLost as error:
            assert device in str(error)
            assert device == "target" or case.name not in DO_WITHOUT_DRAFTERS
            continue

        # The method continues without this device, or never used it.
        asks_drafts = any(event.device == "draft" for event in trace.events)
        assert device == "draft"
        assert case.name in DO_WITHOUT_DRAFTERS or not asks_drafts
        assert output == WORDS[:TOKENS], settings


def test_after_a_device_raises_the_world_serves_the_next_request(case):
    """Only the first request's passes fail here."""
    for settings in case.at(3):
        models = toys("target", breaks_at=2)
        world = Virtual(models, LATENCY)
        with pytest.raises(DeviceFailed):
            write(world, case, settings)
        models["target"].breaks_at = 10**9
        output, _ = write(world, case, settings)
        assert output == WORDS[:TOKENS]
