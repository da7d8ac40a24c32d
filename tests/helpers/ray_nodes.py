"""One Ray cluster for all tests that need one: three nodes with one processor each.

Starting it takes half a minute of processor time, so the first test that needs it
starts it, and it ends after the last one. These tests run before all others (see
``tests_with_nodes_first``), so that one process of a parallel run gets all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from speclib import paths

FIXTURE = "ray_nodes"
NAMES = ("one", "two", "three")

# Ray checks every half second whether a node is alive. The time that a busy node may
# take to answer keeps its default.
HEALTH_CHECKS = {"health_check_period_ms": 500, "health_check_initial_delay_ms": 500}

# One processor each, without Ray's dashboard, log and monitor processes.
NODE_OPTIONS: dict[str, Any] = {
    "num_cpus": 1,
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
}

# The nodes' environment. By default, Ray yields to every other program.
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}


@contextmanager
def in_environment(settings: dict[str, str]) -> Iterator[None]:
    """Sets environment variables for the length of a block."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


class RayNodes:
    """The nodes; the first one cannot be killed.

    home: an empty folder, which becomes their SPECLIB_HOME.
    """

    def __init__(self, home: Path):
        from ray.cluster_utils import Cluster as RayCluster

        (home / "data").symlink_to(paths.DATA, target_is_directory=True)
        self._settings = {"SPECLIB_HOME": str(home), **SETTINGS}
        self._node_of_name = {}
        first, *others = NAMES
        with in_environment(self._settings):
            self._cluster = RayCluster(
                initialize_head=True,
                head_node_args={
                    "node_name": first,
                    "_system_config": HEALTH_CHECKS,
                    **NODE_OPTIONS,
                },
            )
        for name in others:
            self.add(name)

    @property
    def address(self) -> str:
        """The cluster's address, as host:port."""
        return self._cluster.address

    def add(self, name: str, processors: int = 1) -> None:
        options = NODE_OPTIONS | {"num_cpus": processors}
        with in_environment(self._settings):
            node = self._cluster.add_node(node_name=name, **options)
        self._node_of_name[name] = node

    def kill(self, name: str) -> None:
        """Ends a node as if its machine had lost power.

        The node's first process watches the others. It is halted before they end, so
        that it cannot report their deaths.
        """
        node = self._node_of_name.pop(name)
        (first,) = node.all_processes["raylet"]
        raylet = psutil.Process(first.process.pid)
        raylet.suspend()
        for process in raylet.children(recursive=True):
            process.kill()
        self._cluster.remove_node(node, allow_graceful=False)

    def add_missing(self) -> None:
        """Restarts killed nodes, and waits until Ray lists exactly these nodes.

        Ray lists a killed node until it has missed it for some seconds.
        """
        for name in NAMES[1:]:
            if name not in self._node_of_name:
                self.add(name)
        self._cluster.wait_for_nodes()

    def end(self) -> None:
        self._cluster.shutdown()


class Shared:
    """The running cluster, and whether the next test needs it too."""

    running: RayNodes | None = None
    is_needed_again = False


@pytest.fixture(scope="module")
def ray_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    """The cluster, which this process may join while the tests of a module run."""
    ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    if Shared.running is None:
        Shared.running = RayNodes(tmp_path_factory.mktemp("nodes"))
    nodes = Shared.running
    nodes.add_missing()
    with in_environment({"RAY_ADDRESS": nodes.address}):
        yield nodes
        ray.shutdown()
    if not Shared.is_needed_again:
        Shared.running = None
        nodes.end()


# -- hooks for tests/conftest.py -------------------------------------------------------
def needs_nodes(test: pytest.Item | None) -> bool:
    return FIXTURE in getattr(test, "fixturenames", ())


def tests_with_nodes_first(tests: list[pytest.Item]) -> None:
    """Puts the tests that need the cluster before all others."""
    tests.sort(key=lambda test: not needs_nodes(test))


def note_next_test(test: pytest.Item | None) -> None:
    """Notes the next test, before the fixtures of the current one end."""
    Shared.is_needed_again = needs_nodes(test)
