"""Devices in a Ray cluster, in wall-clock time: one actor for each of their processes.

Ray places the actors, starts them and reports when one is lost. An actor does the same
as a worker process on one machine (see ``actor``).

Greedy rows are sent as their tokens; other rows are sent whole. The times in a trace
are the devices' own readings, converted to the controller's clock (see ``clocks``). The
trace's ``clock_error`` states how far off they may be.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util import (
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from speclib.data.latency import Latency
from speclib.data.pairs import Pair
from speclib.errors import BadValue
from speclib.models.open_pair import OpenPair
from speclib.worlds.devices import AnyFuture, DeviceLost
from speclib.worlds.performer import DeviceSpec, Question, Reply
from speclib.worlds.real_devices import RealDevices

from . import clocks, nodes
from .actor import ASIDE, Actor, Assignment, fingerprint_of_code
from .clocks import Reading
from .nodes import Resources

# Ray may call these at the same time: an operation, and one method of ASIDE.
REMOTE_ACTOR: Any = ray.remote(  # type: ignore[call-overload]
    concurrency_groups={ASIDE: 1}, max_restarts=0
)(Actor)

PLACED = "CREATED"  # Ray's state of a group that has its resources

# Round trips to read a new device's clock; before each request there is one more.
TRIPS_AT_FIRST = 8
# Seconds for an actor to read its clock, or to report why another one has ended.
PATIENCE = 0.5


class ActorWorker:
    """The actors of one device, all on one node; the first one answers for all.

    ``needs``: the resources that each actor needs. ``assignments``: what each builds.
    """

    def __init__(self, needs: Sequence[Resources], assignments: Sequence[Assignment]):
        self.has_followers = len(assignments) > 1
        self.node = "not known yet"
        self._asked = 0  # the number of questions so far
        self._actors: list[Any] = []
        bundles = [{"CPU": own.cpus, "GPU": own.gpus} for own in needs]
        self._group = placement_group(bundles, "STRICT_PACK")
        # Releases the resources however this worker ends, even by an interrupt.
        self._release = weakref.finalize(self, release, self._group, self._actors)

        for number, bundle in enumerate(needs):
            strategy = PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=number
            )
            actor = REMOTE_ACTOR.options(
                num_cpus=bundle.cpus,
                num_gpus=bundle.gpus,
                scheduling_strategy=strategy,
            )
            self._actors.append(actor.remote())

        self._first, *others = self._actors
        self._serving = []  # each becomes ready when its follower ends
        if others:
            meeting = self._first.offer_meeting.remote()
            for follower, own in zip(others, assignments[1:], strict=True):
                self._serving.append(follower.follow.remote(meeting, own))
        self._answer = self._first.start.remote(assignments[0])

    @property
    def signs(self) -> list[Any]:
        """Objects that become ready when it answers, or one of its actors ends."""
        return [self._answer, *self._serving]

    def ask(self, question: Question) -> None:
        """Sends an operation. If the worker ended, ``receive`` raises DeviceLost."""
        self._asked += 1
        self._answer = self._first.perform.remote(self._asked, question)

    def interrupt(self) -> None:
        """Tells the worker that the current operation is no longer wanted."""
        self._first.stop.remote(self._asked)

    def receive(self, timeout: float, setting: str = "timeout") -> Any:
        """Waits for its next message.

        Raises DeviceLost with the cause if none can arrive any more, or none arrives
        within ``timeout`` seconds. The actors have then ended. ``setting``: the
        argument that sets the timeout.
        """
        until = time.monotonic() + timeout
        try:
            ready, _ = ray.wait(self.signs, timeout=timeout)
            if ready and self._answer not in ready:
                ray.get(ready)  # raises if a follower failed
                # It ended normally: the first rank will report why.
                still = max(PATIENCE, until - time.monotonic())
                ready, _ = ray.wait([self._answer], timeout=still)
            if ready:
                return ray.get(self._answer)
            cause = self._why_nothing_came(timeout, setting)
        except RayError as error:
            ended = nodes.one_line(error)
            cause = f"its process on node {self.node!r} ended (Ray: {ended})"
        self.stop()
        raise DeviceLost(cause) from None

    def _why_nothing_came(self, timeout: float, setting: str) -> str:
        if placement_group_table(self._group)["state"] != PLACED:
            return (
                f"no node of the cluster had room for it in {timeout:g} s: others use "
                f"what it needs, or Ray is slow. Wait, or give a larger {setting}"
            )
        return (
            f"no answer in {timeout:g} s; it was stopped. If the hardware or network "
            f"is slow, give a larger {setting}"
        )

    @property
    def pids(self) -> tuple[int, ...]:
        """The IDs of its processes on their node. Raises RayError if one has ended."""
        return tuple(ray.get([actor.pid.remote() for actor in self._actors]))

    def read_clock(self) -> Reading:
        """Reads its clock, relative to ours. Raises RayError if it does not answer."""
        return clocks.read(
            lambda: float(ray.get(self._first.clock.remote(), timeout=PATIENCE))
        )

    def let_go(self) -> None:
        """Ends its actors, and releases their resources."""
        self._release()

    def stop(self, patience: float = 0.0) -> None:
        """As ``let_go``, since Ray ends actors at once."""
        self.let_go()


def release(group: Any, actors: list[Any]) -> None:
    """Ends actors, and releases their resources, if the cluster is still connected."""
    if not ray.is_initialized():
        return  # Ray has ended them with the connection
    with contextlib.suppress(RayError, ValueError):
        remove_placement_group(group)
    for actor in actors:
        with contextlib.suppress(RayError, ValueError):
            ray.kill(actor)


class Cluster(RealDevices[ActorWorker]):
    """``pair`` on the machines of a Ray cluster: a draft and ``servers`` targets.

    Ray decides which node a device is on; all processes of one device are on the same
    node. ``address``: the cluster's address, as host:port; None: RAY_ADDRESS, or else
    the cluster that runs on this machine. ``settings``: the other arguments of
    RealDevices.

    Raises BadValue if there is no cluster, or if it is too small for the pair. Raises
    DeviceLost as Processes does, and if a node has another version of speclib. Use it
    as a context manager, or ``close()`` it.
    """

    def __init__(
        self, pair: Pair | OpenPair, *, address: str | None = None, **settings: Any
    ):
        self._address = address
        super().__init__(pair, **settings)

    def _prepare(self) -> None:
        """Raises BadValue for a missing or too small cluster, or shared devices."""
        if self.emulate is not None and self.emulate.shared is not None:
            raise BadValue(
                f"draft and target of pair {self.pair.name!r} share devices, which is "
                "not possible in a cluster: give world='emulated'"
            )
        self._node_of: dict[str, str] = {}  # including devices that are lost
        self._clock_of: dict[str, Reading] = {}
        nodes.join(self._address)
        self._place = nodes.place_in_cluster(self.pair)
        if self.emulate is None:
            nodes.check_places(self.pair, self._place)
        self._needs_now()

    # -- workers -----------------------------------------------------------------------
    def _needs_now(self) -> dict[str, tuple[Resources, ...]]:
        """The resources of each device, the largest first; see ``nodes.needs_of``."""
        devices = [(d.name, d.role, d.index) for d in self.devices.values()]
        is_emulated = self.emulate is not None
        return nodes.needs_of(self.pair, self._place, devices, is_emulated)

    def _missing(self) -> list[str]:
        missing = super()._missing()
        if not missing:
            return []
        # Nodes come and go, so we check each time whether all devices fit. The largest
        # starts first, while there is room for it.
        self._needs = self._needs_now()
        return [name for name in self._needs if name in missing]

    def _start_worker(self, name: str) -> ActorWorker:
        role, index = self.devices[name].role, self.devices[name].index
        needs = self._needs[name]
        first = Assignment(
            nodes.as_seen_by_actor(
                self.pair, self._place, role, index, self.emulate is not None
            ),
            DeviceSpec(name, role, index, self.dtype, self.emulate),
            number=0,
            size=len(needs),
            code=fingerprint_of_code(),
            patience=max(1.0, self.timeout / 2),
        )
        ranks = [replace(first, number=number) for number in range(first.size)]
        return ActorWorker(needs, ranks)

    def _note_ready(self, name: str, answer: str) -> None:
        node = nodes.names().get(answer, answer)
        worker = self._workers[name]
        worker.node = self._node_of[name] = node
        self._clock_of.pop(name, None)  # the node may be another one
        for _ in range(TRIPS_AT_FIRST):
            self._read_clock(name)
        if name not in self._clock_of:
            raise DeviceLost(
                f"device {name!r} on node {node!r} did not send its clock's time in "
                f"{PATIENCE:g} s: the network is too slow"
            )

    @staticmethod
    def _wait(signs: list[Any], patience: float) -> list[Any]:
        ready, _ = ray.wait(signs, timeout=patience)
        return list(ready)

    @property
    def nodes(self) -> dict[str, str]:
        """The name of each device's node, or of its last node if the device is lost."""
        return dict(self._node_of)

    # -- the clock ---------------------------------------------------------------------
    @property
    def clocks(self) -> dict[str, Reading]:
        """The best reading of each device's clock, relative to ours."""
        return dict(self._clock_of)

    def _zero(self) -> None:
        for name in self._workers:
            self._read_clock(name)
        super()._zero()

    def _read_clock(self, name: str) -> None:
        """Reads a device's clock, and keeps the best reading.

        If the device is gone or hangs, its next operation raises DeviceLost.
        """
        with contextlib.suppress(RayError):
            new = self._workers[name].read_clock()
            self._clock_of[name] = clocks.surer(self._clock_of.get(name), new)

    def _times_of(self, reply: Reply, future: AnyFuture) -> tuple[float, float]:
        """The start and end of an operation, by our clock.

        An operation cannot begin before its question is sent, or end after its answer
        is received: clock errors that imply this are corrected.
        """
        assert future.sent is not None
        assert future.received is not None
        ahead = self._clock_of[future.device].offset
        start, end = super()._times_of(reply, future)
        start, end = start - ahead, end - ahead

        too_early = max(0.0, future.sent - start)
        too_late = max(0.0, end - future.received)
        return start + too_early - too_late, end + too_early - too_late

    @property
    def drafts_per_target_pass(self) -> float:
        # A message takes half a round trip, which is how far off a reading may be.
        draft, target = self._clock_of["draft"], self._clock_of["target"]
        latency = self.emulate
        if latency is None:
            latency = Latency.ratio(self.ratio, self.cost_ratio.target_seconds)
        return latency.over_network(draft.error, target.error).drafts_per_target_pass()

    def _facts(self) -> dict[str, Any]:
        """The node of each device, and the largest possible error of its times."""
        now = self._origin + self.now
        errors = {name: clock.error_at(now) for name, clock in self._clock_of.items()}
        return {"nodes": dict(self._node_of), "clock_error": errors}
