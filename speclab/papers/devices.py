"""The number of devices a run reserves: all that its models are placed on, busy or not.

A device that waits for another one is not free for other work, so it counts. Only the
run's placement matters: a method whose models take turns could do with fewer devices,
but this module does not consider that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from speclab.runs.spec import MeasuredSpec, Spec, ToySpec
from speclab.theory.hardware import Hardware, load_hardware
from speclib import machine
from speclib.data.pairs import Pair, load_pair
from speclib.methods import about
from speclib.models.open_pair import open_pair

# Without a hardware file, each model has one device to itself.
ONE_EACH = Hardware(draft=1, target=1, reading=0.0, layers=0, join=0.0)


def reserved_devices(spec: Spec, chosen: Mapping[str, Any]) -> int:
    """The number of devices of a cell's run: its targets', and its draft's if any.

    ``chosen``: the settings that a search picked.
    """
    settings = dict(spec.settings) | dict(chosen)
    drafts = about(spec.method).uses_draft
    return count_devices(spec, drafts, int(settings.get("servers", 1)))


def count_devices(spec: Spec, drafts: bool, servers: int = 1) -> int:
    """The devices of a run with ``servers`` targets, plus the draft model if any."""
    if isinstance(spec, MeasuredSpec):
        return _count_places(spec.pair, drafts, servers, machine.cores())
    return _count_of_hardware(spec.latency, drafts, servers)


# Cached: every number of a table asks for this, and the files don't change meanwhile.
@cache
def _count_places(pair: str, drafts: bool, servers: int, cores: int) -> int:
    """``count_devices`` for a measured run on a machine with ``cores``."""
    return len(places_of(load_pair(pair), drafts, servers))


@cache
def _count_of_hardware(latency: str, drafts: bool, servers: int) -> int:
    return (load_hardware(latency) or ONE_EACH).devices(drafts, servers)


def hardware_of(spec: ToySpec) -> Hardware:
    """The hardware on which a virtual or emulated cell's models are placed."""
    return load_hardware(spec.latency) or ONE_EACH


def places_of(pair: Pair, drafts: bool, servers: int = 1) -> frozenset[str]:
    """The cores or GPUs that compute a pair's models on this machine.

    If the target is on a GPU, cores do not count: a core is no match for the GPU and
    could not help it. Core numbers wrap around this machine's cores, the same way
    workers are pinned.
    """
    place = open_pair(pair).place
    places = list(place.of("draft")) if drafts else []
    for index in range(servers):
        places += place.of("target", index)
    if any(_is_gpu(name) for name in place.of("target")):
        places = [name for name in places if _is_gpu(name)]
    return frozenset(_on_this_machine(name) for name in places)


def _is_gpu(place: str) -> bool:
    return place.startswith("cuda")


def _on_this_machine(place: str) -> str:
    if not place.startswith("core:"):
        return place
    return f"core:{int(place.removeprefix('core:')) % machine.cores()}"
