"""Nodes of a Ray cluster that are all on this machine: for lessons, and to try things.

A process of its own starts the nodes, keeps them, and kills one when it is asked to.
What Ray prints goes nowhere, and its files stand in a folder that is removed in the
end. If this process ends, whatever the reason, so do the nodes::

    this process ── stdin:  the name of a node to kill ──> keeper ── raylet "node-1"
                 <── stdout: address, or what went wrong ──       ├── raylet "node-2"
                                                                  └── ...

Each node has one CPU to give, so that each gets one device with one thread.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import psutil
import ray
from ray.cluster_utils import Cluster as RayCluster

from speclib.errors import BadValue
from speclib.worlds.cluster import nodes

SECONDS_TO_END = 30.0
FOLDER = "RAY_TMPDIR"  # the environment's name for where Ray's files are

# A processor each, and none of Ray's processes that only tell people what goes on.
NODE_OPTIONS: dict[str, Any] = {
    "num_cpus": 1,
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
}

# In the nodes' environment. Left alone, Ray lets every other program go first.
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

# What the keeper's answers begin with.
STARTED, KILLED, FAILED = "started", "killed", "failed"


class LaptopNodes:
    """Nodes that run on this machine.

    ``address``: of their cluster, as host:port. ``names``: of the nodes; this process
    has joined through the first one.
    """

    def __init__(self, keeper: subprocess.Popen[str], names: Sequence[str]):
        self._keeper = keeper
        self.names = tuple(names)
        self.address = self._answer()

    def kill(self, name: str) -> None:
        """Kills all processes of a node, at once.

        Raises BadValue for the first node, and for one that there is not.
        """
        if name not in self.names[1:]:
            raise BadValue(
                f"node {name!r} cannot be killed: give one of "
                f"{', '.join(self.names[1:])}"
            )
        assert self._keeper.stdin is not None
        print(name, file=self._keeper.stdin, flush=True)
        self._answer()

    def _answer(self) -> str:
        """What the keeper says next, without its first word."""
        assert self._keeper.stdout is not None
        kind, _, text = self._keeper.stdout.readline().strip().partition(" ")
        if kind not in (STARTED, KILLED):
            raise BadValue(
                "Ray could not run its nodes on this machine: "
                f"{text or 'the process that keeps them has ended'}"
            )
        return text


@contextmanager
def laptop_nodes(names: Sequence[str]) -> Iterator[LaptopNodes]:
    """Starts a node of each name, and joins their cluster; ends all of it at last.

    Raises BadValue where this process has joined another cluster, and where Ray cannot
    start its nodes.
    """
    if ray.is_initialized():
        raise BadValue(
            "this process has joined a Ray cluster already: call ray.shutdown(), or "
            "restart the kernel, before nodes are started on this machine"
        )
    # Addresses of sockets are short, so that the folder cannot be just anywhere.
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    keeper = _start_keeper(names, folder)
    try:
        running = LaptopNodes(keeper, names)
        logging.getLogger("ray").setLevel(logging.ERROR)
        nodes.join(running.address)
        yield running
    finally:
        ray.shutdown()
        _end(keeper)
        shutil.rmtree(folder, ignore_errors=True)  # where the keeper could not


def _start_keeper(names: Sequence[str], folder: str) -> subprocess.Popen[str]:
    settings = {FOLDER: folder, **SETTINGS}
    return subprocess.Popen(
        [sys.executable, "-m", __name__, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | settings,
        text=True,
        start_new_session=True,  # an interrupt is not for the nodes
    )


def _end(keeper: subprocess.Popen[str]) -> None:
    """Ends the nodes, and waits until they have ended."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.close()
    try:
        keeper.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        keeper.kill()  # Ray's own reapers then end the nodes
        keeper.wait()
    keeper.stdout.close()


# -- the keeper ------------------------------------------------------------------------
def keep_nodes(names: Sequence[str], orders: TextIO, answers: TextIO) -> None:
    """Starts a node of each name, kills those that are ordered, then ends them all."""
    first, *others = names
    cluster = RayCluster(
        initialize_head=True, head_node_args={"node_name": first, **NODE_OPTIONS}
    )
    try:
        node_of_name = {}
        for name in others:
            node_of_name[name] = cluster.add_node(node_name=name, **NODE_OPTIONS)
        print(STARTED, cluster.address, file=answers, flush=True)

        for order in orders:
            name = order.strip()
            kill(cluster, node_of_name.pop(name))
            print(KILLED, name, file=answers, flush=True)
    finally:
        cluster.shutdown()
        shutil.rmtree(os.environ[FOLDER], ignore_errors=True)


def kill(cluster: RayCluster, node: Any) -> None:
    """Ends all processes of a node as if its machine had lost power.

    None of them has time to tell of another's end, which Ray would print in the middle
    of a notebook. So the first, which watches the others, is halted before.
    """
    (first,) = node.all_processes["raylet"]
    raylet = psutil.Process(first.process.pid)
    raylet.suspend()
    for process in raylet.children(recursive=True):
        process.kill()
    cluster.remove_node(node, allow_graceful=False)


def main() -> None:
    """What the keeper does; the names are its arguments."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what Ray prints, and the nodes, which inherit this
    try:
        keep_nodes(sys.argv[1:], sys.stdin, answers)
    except Exception as error:  # it is for the other process to say
        print(FAILED, nodes.one_line(error), file=answers, flush=True)
        raise


if __name__ == "__main__":
    main()
