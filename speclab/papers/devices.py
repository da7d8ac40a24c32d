"""How many devices a run reserves: all that its models stand on, busy or not.

A device that waits for another one can do nothing else meanwhile, so it counts. That a
method which takes turns could do with fewer is no business of this module: what counts
is how the run was placed.
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

# Where nobody says on how many devices a model stands, it has one of its own.
ONE_EACH = Hardware(draft=1, target=1, reading=0.0, layers=0, join=0.0)


def reserved_devices(spec: Spec, chosen: Mapping[str, Any]) -> int:
    """The devices of a cell's run: its targets', and the draft's if it has one.

    ``chosen``: the settings that a choice among several came to.
    """
    settings = dict(spec.settings) | dict(chosen)
    drafts = about(spec.method).uses_draft
    return count_devices(spec, drafts, int(settings.get("servers", 1)))


def count_devices(spec: Spec, drafts: bool, servers: int = 1) -> int:
    """The devices of a run with or without a draft model, and of so many targets."""
    if isinstance(spec, MeasuredSpec):
        return _count_places(spec.pair, drafts, servers, machine.cores())
    return _count_of_hardware(spec.latency, drafts, servers)


# Every number of a table asks for them, and they hang on files that stay as they are.
@cache
def _count_places(pair: str, drafts: bool, servers: int, cores: int) -> int:
    """The same of a measured run on a machine of so many ``cores``."""
    return len(places_of(load_pair(pair), drafts, servers))


@cache
def _count_of_hardware(latency: str, drafts: bool, servers: int) -> int:
    return (load_hardware(latency) or ONE_EACH).devices(drafts, servers)


def hardware_of(spec: ToySpec) -> Hardware:
    """What the models of a virtual or emulated cell stand on."""
    return load_hardware(spec.latency) or ONE_EACH


def places_of(pair: Pair, drafts: bool, servers: int = 1) -> frozenset[str]:
    """The cores or GPUs that a pair's models are computed on here.

    A core beside a target on a GPU does not count: it is no equal of the GPU, and could
    not help it. Cores are counted among those that this machine has, as workers are
    pinned.
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
