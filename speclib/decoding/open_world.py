"""Opens a world by its name."""

from __future__ import annotations

import os
from math import inf

from speclib.arguments import checked
from speclib.core.settings import Role
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import Pair
from speclib.errors import BadValue, naming_extras, unknown_name
from speclib.models import preflight
from speclib.models.loading import check_dtype
from speclib.models.open_pair import OpenPair, open_pair
from speclib.worlds.devices import Servers, device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

from .auto_settings import RequestedSettings

WORLDS = ("virtual", "emulated", "processes", "cluster")


@checked
@naming_extras("a world of real models")
def open_world(
    world: str,
    pair: Pair,
    *,
    dtype: str = "auto",
    latency: str | Latency | None = None,
    servers: Servers = 1,
    cancel: str | None = None,
) -> World:
    """Opens a world of ``pair``, with ``servers`` devices for its target.

    >>> toy = speclib.load_pair("toy")
    >>> with speclib.open_world("virtual", toy, servers=2) as world:
    ...     result = speclib.decode("x", world=world, method="dsi")
    >>> result.trace.devices
    ['draft', 'target', 'target-2']

    ``world`` is one of

    - "virtual": tokens are computed in this process, by undilated models, and
      operations take as long as the pair's latency file states. If the pair sets the
      number of threads per device, torch uses no more in this process until another
      pair is opened;
    - "emulated": the same tokens and durations, in worker processes that wait;
    - "processes": one worker process per device, in wall-clock time;
    - "cluster": the same on the machines of a Ray cluster (see ``Cluster``).

    ``latency``: a Latency, or a path under data/latency, instead of the pair's own.
    ``cancel``: when unwanted work is stopped, see World; None means "immediate" in
    "virtual" and "after-op" in worker processes. Close the world when you are done.
    """
    durations = load_latency_for(world, pair, latency)
    return _open(world, open_pair(pair), durations, servers, dtype, cancel)


def open_for(
    requested: RequestedSettings,
    world: str,
    opened: OpenPair,
    dtype: str,
    cancel: str | None,
) -> World:
    """Opens a world with the number of target servers in the method's settings."""
    latency = load_latency_for(world, opened.pair)
    if latency is not None:
        servers = requested.servers_at(latency.c)
    else:  # real devices: c is unknown until their workers run
        other_cores = 1 if world == "cluster" else (os.cpu_count() or 2) - 1
        servers = requested.servers_at(inf, available=max(1, other_cores))
    return _open(world, opened, latency, servers, dtype, cancel)


def load_latency_for(
    world: str, pair: Pair, latency: str | Latency | None = None
) -> Latency | None:
    """The durations that a world simulates; None if it measures them.

    ``latency``: a Latency, or a path under data/latency, instead of the pair's own.
    """
    if world not in WORLDS:
        raise unknown_name(
            f"unknown world {world!r}", world, WORLDS, "Or give an open World"
        )
    if world in ("processes", "cluster"):
        return None
    if latency is not None and not isinstance(latency, str):
        return latency
    name = pair.latency if latency is None else latency
    if name is None:
        raise BadValue(
            f"pair {pair.name!r} names no latency file, but world={world!r} needs one: "
            'give it latency = "..." (a path under data/latency)'
        )
    return load_latency(name)


def _open(
    world: str,
    opened: OpenPair,
    latency: Latency | None,
    servers: int,
    dtype: str,
    cancel: str | None,
) -> World:
    """Opens the world; ``latency``: what ``load_latency_for`` returned."""
    check_dtype(dtype)
    if cancel is None:
        cancel = "immediate" if world == "virtual" else "after-op"
    if world == "cluster":
        with naming_extras("world='cluster'"):
            from speclib.worlds.cluster.cluster_world import Cluster
        return Cluster(opened, servers=servers, cancel=cancel, dtype=dtype)
    if world != "virtual":
        with naming_extras(f"world={world!r}"):  # a browser's Python has no processes
            from speclib.worlds.processes import Processes
        return Processes(
            opened, servers=servers, cancel=cancel, dtype=dtype, emulate=latency
        )

    assert latency is not None  # load_latency_for would have raised
    preflight.check_gpus(opened, servers)
    models = {}
    for name in device_names(servers):
        role: Role = "draft" if name == "draft" else "target"
        models[name] = opened.build(role, dtype, dilated=False)
    opened.set_threads()
    opened_world = Virtual(models, latency, cancel=cancel, opened=opened)
    opened_world.dtype = dtype
    return opened_world
