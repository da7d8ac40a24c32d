"""A process on every node of a cluster, which has the node to itself.

What is timed there must not share processors with anything else that Ray runs. So each
of these processes takes all CPUs and GPUs that its node has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from speclib.errors import BadValue
from speclib.models import fingerprint
from speclib.worlds.devices import DeviceLost
from speclib.worlds.worker import attempt

from . import nodes

START_SECONDS = 120.0  # in which a node's process is there, or the node counts as lost


class Helper:
    """What runs on a node: ``make(node)`` returns what answers questions there."""

    def __init__(self, make: Callable[[str], Callable[..., Any]], node: str):
        self._answer = make(node)

    def code(self) -> str:
        """A hash of the source that computes there."""
        return fingerprint.of_code()

    def ask(self, *question: Any) -> Any:
        """The answer, or a Failure."""
        return attempt(self._answer, *question)


class Helpers:
    """A Helper on every node; a context manager.

    ``left_out``: why, by its name, a node is not used. Raises BadValue where there is
    no cluster, where no node can be used, or where one has another version of speclib.
    """

    def __init__(self, make: Callable[[str], Callable[..., Any]]):
        nodes.join()
        self.left_out: dict[str, str] = {}
        self._helpers: dict[str, Any] = {}  # by the node's name
        self._asked: dict[Any, str] = {}  # the node by the answer that is to come
        for node in ray.nodes():
            resources = node["Resources"]
            if node["Alive"] and resources.get("CPU"):
                helper = ray.remote(Helper).options(
                    num_cpus=resources["CPU"],
                    num_gpus=resources.get("GPU", 0),
                    scheduling_strategy=NodeAffinitySchedulingStrategy(
                        node["NodeID"], soft=False
                    ),
                )
                name = _unlike(node["NodeName"], self._helpers)
                self._helpers[name] = helper.remote(make, name)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def _wait_until_ready(self) -> None:
        """Waits until all nodes have their process; leaves out those that get none."""
        codes = {name: helper.code.remote() for name, helper in self._helpers.items()}
        for name, code in codes.items():
            try:
                found = ray.get(code, timeout=START_SECONDS)
            except GetTimeoutError:
                self._leave_out(
                    name,
                    f"no processors were free for {START_SECONDS:g} s: something else "
                    "that Ray runs there uses them",
                )
            except RayError as error:
                self._leave_out(name, f"no process started: {nodes.one_line(error)}")
            else:
                nodes.check_versions(found, name, fingerprint.of_code())
        if not self._helpers:
            reasons = [f"{name}: {why}" for name, why in self.left_out.items()]
            raise BadValue(f"no node can be used: {'; '.join(reasons) or 'none is up'}")

    def _leave_out(self, name: str, why: str) -> None:
        ray.kill(self._helpers.pop(name))
        self.left_out[name] = why

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> list[str]:
        """The names of the nodes that are not lost."""
        return list(self._helpers)

    @property
    def idle(self) -> list[str]:
        """Those that are asked nothing now."""
        busy = self._asked.values()
        return [name for name in self._helpers if name not in busy]

    def ask(self, node: str, *question: Any) -> None:
        """Asks a node that is idle."""
        self._asked[self._helpers[node].ask.remote(*question)] = node

    def first(self) -> tuple[str, Any]:
        """Waits until some node answers; its name and the answer.

        The answer is a Failure where the question failed there, and a DeviceLost where
        the node was lost, which is then asked no more.
        """
        (ready, *_), _ = ray.wait(list(self._asked))
        node = self._asked.pop(ready)
        try:
            return node, ray.get(ready)
        except RayError as error:
            del self._helpers[node]
            cause = nodes.one_line(error)
            return node, DeviceLost(f"node {node!r} was lost (Ray: {cause})")

    def close(self) -> None:
        """Ends the processes, whatever they are doing."""
        helpers, self._helpers, self._asked = self._helpers, {}, {}
        if ray.is_initialized():
            for helper in helpers.values():
                ray.kill(helper)


def _unlike(name: str, others: dict[str, Any]) -> str:
    """``name``, with a number where another node is called the same."""
    number = 1
    unlike = name
    while unlike in others:
        number += 1
        unlike = f"{name}-{number}"
    return unlike
