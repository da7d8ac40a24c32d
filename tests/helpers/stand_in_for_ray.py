"""A stand-in for Ray: real actors in threads of this process, on simulated nodes.

Controller and actors are those of a real cluster. Only the layer between them, as far
as ``speclib.worlds.cluster`` uses it, is simulated: calls are answered in turn,
arguments and results are copies, resources are assigned and released, and an actor dies
with its node. A node dies after a number of operations, so that runs are repeatable. A
device is one process here, not several.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
)
from concurrent.futures import TimeoutError as NothingInTime
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any

import pytest
from ray import cloudpickle
from ray.exceptions import ActorDiedError, GetTimeoutError, NodeDiedError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from speclib.worlds.cluster import actor, cluster_world, nodes

ASIDE = ("rows", "stop", "clock", "pid")  # calls that run alongside an operation
START = "start"
OPERATION = "perform"


def copied(value: Any) -> Any:
    """Returns ``value`` as it arrives on another machine."""
    return cloudpickle.loads(cloudpickle.dumps(value))


class Node:
    """A node with one processor; what runs on it ends when it dies."""

    def __init__(self, name: str):
        self.name = name
        self.number = f"number-of-{name}"
        self.is_alive = True
        self.is_taken = False
        self.handles: list[Handle] = []
        self.operations = 0  # the number requested so far
        self.dies_at: int | None = None  # the operation during which it dies

    def count_operation(self) -> None:
        self.operations += 1
        if self.operations == self.dies_at:
            self.die()

    def die(self) -> None:
        self.is_alive = False
        for handle in self.handles:
            handle.end(NodeDiedError(f"node {self.number} has died"))


class Group:
    """A placement group: one node for each process."""

    def __init__(self, places: list[Node] | None):
        self.places = places
        for node in places or []:
            node.is_taken = True

    def give_back(self) -> None:
        for node in self.places or []:
            node.is_taken = False
        self.places = None

    def wait(self, seconds: float) -> bool:
        return self.places is not None


class Call:
    """One method of an actor, as Ray offers it."""

    def __init__(self, handle: Handle, method: str):
        self.handle = handle
        self.method = method

    def remote(self, *arguments: Any) -> Future:
        return self.handle.call(self.method, arguments)


class Handle:
    """The controller's handle of an actor."""

    def __init__(self, node: Node, of_thread: threading.local):
        self.actor = actor.Actor()
        self.node = node
        self.device = ""  # the device that it builds
        self.is_silent = False  # hung, so it answers nothing
        self._last_operation = 0  # the controller's number for it
        self._error: Exception | None = None
        self._pending: list[Future] = []
        self._in_turn = ThreadPoolExecutor(
            1, initializer=note, initargs=(of_thread, node)
        )
        self._aside = ThreadPoolExecutor(
            1, initializer=note, initargs=(of_thread, node)
        )
        node.handles.append(self)

    def __getattr__(self, method: str) -> Call:
        return Call(self, method)

    def call(self, method: str, arguments: Sequence[Any]) -> Future:
        if method == START:
            self.device = arguments[0].spec.name
        if method == OPERATION:
            self._last_operation = arguments[0]
            self.node.count_operation()
        answer: Future = Future()
        self._pending.append(answer)
        if self._error is not None:
            answer.set_exception(self._error)
            return answer

        arrived = copied(tuple(arguments))
        threads = self._aside if method in ASIDE else self._in_turn
        if not self.is_silent:
            threads.submit(self._perform, method, arrived, answer)
        return answer

    def _perform(self, method: str, arguments: Sequence[Any], answer: Future) -> None:
        with suppress(InvalidStateError):  # the actor's death was its answer
            try:
                answer.set_result(copied(getattr(self.actor, method)(*arguments)))
            except Exception as error:
                answer.set_exception(error)

    def end(self, error: Exception) -> None:
        """Fails every later call and those in progress."""
        if self._error is not None:
            return
        self._error = error
        for answer in self._pending:
            with suppress(InvalidStateError):  # already answered
                answer.set_exception(error)
        self.actor.stop(self._last_operation)  # otherwise its thread would never end
        for threads in (self._in_turn, self._aside):
            threads.shutdown(wait=False)

    def wait_for_threads(self) -> None:
        """Waits, after ``end``, for the calls in progress."""
        for threads in (self._in_turn, self._aside):
            threads.shutdown()


def note(of_thread: threading.local, node: Node) -> None:
    """Stores in a thread the node that it runs on."""
    of_thread.node = node


class Context:
    """Ray's information about a thread's node."""

    gcs_address = "stand-in:1"

    def __init__(self, node: Node | None):
        self._node = node

    def get_node_id(self) -> str:
        assert self._node is not None
        return self._node.number


class StandInForRay:
    """Replaces the module ``ray`` in ``speclib.worlds.cluster``."""

    def __init__(self, names: Sequence[str]):
        self.node_of_name = {name: Node(name) for name in names}
        self.util = self
        self.starts_silent_actors = False  # as if they were still building a model
        self.handles: list[
            Handle
        ] = []  # all actors, in the order in which they started
        self._of_thread = threading.local()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (actor, nodes, cluster_world):
            monkeypatch.setattr(module, "ray", self)
        monkeypatch.setattr(cluster_world, "REMOTE_ACTOR", self)
        for function in ("placement_group", "placement_group_table"):
            monkeypatch.setattr(cluster_world, function, getattr(self, function))
        monkeypatch.setattr(cluster_world, "remove_placement_group", Group.give_back)

    def end(self) -> None:
        """Ends all actors, before the real ``ray`` is back in place.

        An actor that was still running would ask Ray for its node. Ray would start a
        cluster to answer, and end this process a minute after that cluster was gone.
        """
        for handle in self.handles:
            handle.end(ActorDiedError())
        for handle in self.handles:
            handle.wait_for_threads()

    # -- the cluster -------------------------------------------------------------------
    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Context:
        return Context(getattr(self._of_thread, "node", None))

    def nodes(self) -> list[dict[str, Any]]:
        described = []
        for node in self.node_of_name.values():
            facts = {"NodeID": node.number, "NodeName": node.name}
            facts |= {"Alive": node.is_alive, "Resources": {"CPU": 1.0}}
            described.append(facts)
        return described

    def cluster_resources(self) -> dict[str, float]:
        alive = [node for node in self.node_of_name.values() if node.is_alive]
        return {"CPU": float(len(alive))}

    # -- places and actors -------------------------------------------------------------
    def placement_group(self, bundles: Sequence[Any], strategy: str) -> Group:
        free = []
        for node in self.node_of_name.values():
            if node.is_alive and not node.is_taken:
                free.append(node)
        return Group(free[: len(bundles)] if len(free) >= len(bundles) else None)

    def placement_group_table(self, group: Group) -> dict[str, str]:
        return {"state": "CREATED" if group.places else "PENDING"}

    def options(
        self, *, scheduling_strategy: PlacementGroupSchedulingStrategy, **_: Any
    ) -> Actors:
        group: Any = scheduling_strategy.placement_group
        number = scheduling_strategy.placement_group_bundle_index
        return Actors(self, group.places, number)

    def start_actor(self, node: Node) -> Handle:
        """Starts an actor on ``node``."""
        handle = Handle(node, self._of_thread)
        handle.is_silent = self.starts_silent_actors
        self.handles.append(handle)
        return handle

    def kill(self, handle: Handle) -> None:
        handle.end(ActorDiedError())

    # -- for tests ----------------------------------------------------------------
    def handle_of(self, device: str) -> Handle:
        """Returns the actor that currently runs a device."""
        own = [handle for handle in self.handles if handle.device == device]
        return own[-1]

    def after_operations(self, device: str, count: int) -> str:
        """Makes a device's node die in its ``count``-th operation; returns its name."""
        node = self.handle_of(device).node
        node.dies_at = node.operations + count
        return node.name

    # -- answers -----------------------------------------------------------------------
    def wait(
        self, answers: Sequence[Future], timeout: float | None = None
    ) -> tuple[list[Future], list[Future]]:
        """Returns a list with the first ready answer, and a list of the others."""
        wait_for(answers, timeout, FIRST_COMPLETED)
        ready = [answer for answer in answers if answer.done()][:1]
        return ready, [answer for answer in answers if answer not in ready]

    def get(self, answer: Any, timeout: float | None = None) -> Any:
        if isinstance(answer, list):
            return [self.get(one, timeout) for one in answer]
        try:
            return answer.result(timeout)
        except NothingInTime:
            raise GetTimeoutError from None


class Actors:
    """Starts an actor on a node of a group."""

    def __init__(self, ray: StandInForRay, places: list[Node] | None, number: int):
        self.ray = ray
        self.places = places
        self.number = number

    def remote(self) -> Handle:
        assert self.places, "an actor without a place is for a real cluster"
        return self.ray.start_actor(self.places[self.number])
