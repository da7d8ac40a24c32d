"""Joins a Ray cluster, and checks whether a pair fits onto its nodes.

The pair file determines what each process of a device needs: as many CPUs as the pair
has threads, and one GPU for each of its places ``cuda:N``. Ray decides which node the
device gets, and which of the node's GPUs.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import ray
from ray._private.authentication.authentication_token_setup import (
    maybe_enable_token_auth_if_token_available,
)
from ray._private.utils import read_ray_address
from ray.exceptions import AuthenticationError

from speclib.core.settings import Role
from speclib.data.pairs import Pair
from speclib.data.placement import Place
from speclib.errors import BadValue

ANY_RUNNING = "auto"
HOW_TO_START = (
    "Start one with `ray start --head`, join it on every other machine with `ray start "
    "--address=<host>:6379`, and set RAY_ADDRESS=<host>:6379 where speclib runs on a "
    "machine that has not joined"
)
HOW_TO_SHARE_A_TOKEN = (
    "If the first machine has a file ~/.ray/auth_token, its cluster asks for that "
    "token: copy the file to every other machine, and set RAY_AUTH_MODE=token there "
    "and wherever RAY_ADDRESS is set"
)
SECONDS_TO_REACH = 3.0


# -- the cluster -----------------------------------------------------------------------
def join(address: str | None = None) -> None:
    """Connects this process to a running cluster, once.

    ``address``: host:port; None: RAY_ADDRESS, or else the cluster that runs on this
    machine. Raises BadValue if there is none, or if it runs another version of Ray.
    """
    if ray.is_initialized():
        _check_same(address)
        return
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        # Ray records where this machine last started a cluster; it may be gone.
        address = read_ray_address() or ANY_RUNNING
        # If this machine has a token, `ray start --head` requires it.
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    if address != ANY_RUNNING:
        _check_reachable(address)
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, AuthenticationError) as error:
        raise BadValue(
            f"no Ray cluster is running that could be joined. {HOW_TO_START}. "
            f"{HOW_TO_SHARE_A_TOKEN}"
        ) from error
    except RuntimeError as error:  # Ray compares the versions of Ray and Python
        raise BadValue(
            f"the Ray cluster at {address} cannot be joined: {one_line(error)}"
        ) from error


def _check_same(address: str | None) -> None:
    """Raises BadValue if this process has joined a cluster at another address."""
    joined: str = ray.get_runtime_context().gcs_address
    if address is not None and address != joined:
        raise BadValue(
            f"this process has joined the Ray cluster at {joined} and cannot join the "
            f"one at {address} as well: start another process, or call ray.shutdown()"
        )


def _check_reachable(address: str) -> None:
    """Raises BadValue if nothing listens at ``address``: Ray would wait a long time."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_REACH).close()
    except (OSError, ValueError) as error:
        raise BadValue(
            f"no Ray cluster answers at {address} ({error}): give host:port, as in "
            f"10.0.0.1:6379. {HOW_TO_START}"
        ) from error


def one_line(error: object) -> str:
    """The text of an error, without its line breaks."""
    return " ".join(str(error).split())


def names() -> dict[str, str]:
    """The name of every node, by the ID that Ray gave it.

    This is the name that the node was started with (``ray start --node-name=...``), or
    else its address.
    """
    return {node["NodeID"]: node["NodeName"] for node in ray.nodes()}


# -- what a device needs ---------------------------------------------------------------
class Resources(NamedTuple):
    """The CPUs and GPUs that a process needs or a node has.

    GPUs come first, because they are rarer: a tuple with more GPUs is the larger one.
    """

    gpus: float = 0.0
    cpus: float = 0.0

    @classmethod
    def sum(cls, parts: Sequence[Resources]) -> Resources:
        """The CPUs and GPUs of all ``parts``."""
        return cls(sum(part.gpus for part in parts), sum(part.cpus for part in parts))

    def has(self, wanted: Resources) -> bool:
        """Whether this is enough for ``wanted``."""
        return self.gpus >= wanted.gpus and self.cpus >= wanted.cpus

    def without(self, taken: Resources) -> Resources:
        """The rest after ``taken`` is subtracted."""
        return Resources(self.gpus - taken.gpus, self.cpus - taken.cpus)

    def __str__(self) -> str:
        cpus = f"{self.cpus:g} CPU"
        return f"{cpus}, {self.gpus:g} GPU" if self.gpus else cpus


def needs_of(
    pair: Pair,
    place: Place,
    devices: Sequence[tuple[str, Role, int]],
    is_emulated: bool,
) -> dict[str, tuple[Resources, ...]]:
    """The resources of every device's processes, the largest device first.

    ``devices``: name, role and index of each. An emulated device is one process and
    needs no GPU. All processes of a device are on one node.

    Raises BadValue if no node has the CPUs or GPUs that a device needs in addition to
    the larger devices. Whether something else is using them does not matter.
    """
    needs: dict[str, tuple[Resources, ...]] = {}
    for name, role, index in devices:
        if is_emulated:
            needs[name] = (Resources(cpus=place.threads),)
        else:
            needs[name] = needs_of_device(pair, place, role, index)
    largest_first = sorted(
        needs, key=lambda name: Resources.sum(needs[name]), reverse=True
    )

    capacities = []
    for node in ray.nodes():
        if node["Alive"]:
            own = node["Resources"]
            capacities.append(Resources(own.get("GPU", 0.0), own.get("CPU", 0.0)))
    free = list(capacities)
    for name in largest_first:
        wanted = Resources.sum(needs[name])
        fitting = [node for node in free if node.has(wanted)]
        if not fitting:
            raise _too_small(pair, needs, capacities)
        smallest = min(fitting)
        free[free.index(smallest)] = smallest.without(wanted)
    return {name: needs[name] for name in largest_first}


def _too_small(
    pair: Pair,
    needs: dict[str, tuple[Resources, ...]],
    capacities: Sequence[Resources],
) -> BadValue:
    """The error for a cluster that cannot take all of these devices."""
    wanted = []
    for name, own in needs.items():
        wanted.append(f"{name}: {Resources.sum(own)}")
    whole = Resources.sum([Resources.sum(own) for own in needs.values()])
    there = "; ".join(str(capacity) for capacity in capacities)
    return BadValue(
        f"pair {pair.name!r} needs {whole} ({'; '.join(wanted)}), each device on one "
        f"node, but the {len(capacities)} node(s) of the cluster have {there}. Join "
        "another machine with `ray start`, or ask for fewer servers or threads"
    )


def needs_of_device(
    pair: Pair, place: Place, role: Role, index: int
) -> tuple[Resources, ...]:
    """The resources of each process of a device."""
    places = _places(place, role, index)
    ranks = 1 if pair.model(role).spread == "blocks" else len(places)
    places_of_rank = [places] if ranks == 1 else [(name,) for name in places]
    needs = []
    for own in places_of_rank:
        gpus = sum(name.startswith("cuda") for name in own)
        needs.append(Resources(gpus, place.threads))
    return tuple(needs)


# -- places ----------------------------------------------------------------------------
def _places(place: Place, role: Role, index: int) -> tuple[str, ...]:
    """The places of a device.

    Ray decides which GPUs the device gets. So a further target may have places with the
    same names as the first one's.
    """
    is_named = role == "draft" or index <= len(place.servers)
    on_gpus = any(name.startswith("cuda") for name in place.target)
    return place.target if on_gpus and not is_named else place.of(role, index)


def place_in_cluster(pair: Pair) -> Place:
    """The place of ``pair``: its first alternative with enough GPUs in the cluster."""
    gpus = int(ray.cluster_resources().get("GPU", 0))
    return pair.place.on_machine_with(gpus)


def as_seen_by_actor(
    pair: Pair, place: Place, role: Role, index: int, is_emulated: bool = False
) -> Pair:
    """``pair`` with the places of one device as its processes see them.

    A process only sees the GPUs that Ray gave it, as cuda:0, cuda:1, and so on. An
    emulated device has none, and computes on a CPU.
    """
    is_one_process = pair.model(role).spread == "blocks"
    gpus = count()
    seen = []
    for name in _places(place, role, index):
        if name.startswith("cuda"):
            name = f"cuda:{next(gpus)}" if is_one_process else "cuda:0"
            if is_emulated:
                name = "cpu"
        seen.append(name)
    places = tuple(seen)
    own_place = Place(
        draft=places, target=places, servers=(places,) * index, threads=place.threads
    )
    return pair.model_copy(update={"place": own_place})


def check_places(pair: Pair, place: Place) -> None:
    """Raises BadValue if draft and target share GPUs: in a cluster they cannot."""
    shared = sorted(
        name for name in {*place.draft} & {*place.target} if name.startswith("cuda")
    )
    if shared:
        raise BadValue(
            f"draft and target of pair {pair.name!r} share {', '.join(shared)}, but "
            "in a cluster each device has its own GPUs: give them different ones in "
            "the pair's place"
        )
