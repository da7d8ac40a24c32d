"""Nodes that are processes of this machine, where Ray has a ``Helper`` on each.

They answer what ``Helpers`` of a cluster answer, and are started once for many tests.
Each keeps what it measures in its own folder, as another machine does.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from helpers.ray_nodes import in_environment
from speclib import paths
from speclib.worlds.devices import DeviceLost
from speclib.worlds.worker import attempt

BEGIN = "begin"


def answer_questions(pipe: Connection, name: str) -> None:
    """What a node's process does: begins anew when it is told to, and answers."""
    answer: Callable[..., Any] | None = None
    try:
        while True:
            kind, content = pipe.recv()
            if kind == BEGIN:
                answer = content(name)
            else:
                assert answer is not None
                pipe.send(attempt(answer, *content))
    except EOFError:
        return  # the tests are over


class Node:
    """A node's process, and how to reach it."""

    def __init__(self, name: str, home: Path):
        self.name = name
        self.pipe, other = multiprocessing.Pipe()
        spawning = multiprocessing.get_context("spawn")
        self.process = spawning.Process(target=answer_questions, args=(other, name))
        with in_environment({"SPECLIB_HOME": str(home)}):
            self.process.start()
        other.close()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class NodesInProcesses:
    """The nodes of these names; those that were lost or busy are started anew."""

    def __init__(self, names: Sequence[str], home: Path):
        self._names = names
        self._home = home
        (home / "data").symlink_to(paths.DATA, target_is_directory=True)
        self.node_of_name: dict[str, Node] = {}

    def helpers(self, make: Callable[[str], Callable[..., Any]]) -> HelpersInProcesses:
        """Stands where a test has ``Helpers``."""
        for name in self._names:
            if name not in self.node_of_name:
                self.node_of_name[name] = Node(name, self._home)
            self.node_of_name[name].pipe.send((BEGIN, make))
        return HelpersInProcesses(self.node_of_name)

    def kill(self, name: str) -> None:
        """Ends a node as if its machine had lost power."""
        self.node_of_name[name].process.kill()

    def end(self) -> None:
        for node in self.node_of_name.values():
            node.end()


class HelpersInProcesses:
    """As ``speclib.worlds.cluster.helpers.Helpers``."""

    def __init__(self, node_of_name: dict[str, Node]):
        self._node_of_name = node_of_name
        self._asked: dict[Connection, str] = {}
        self.left_out: dict[str, str] = {}

    @property
    def alive(self) -> list[str]:
        return list(self._node_of_name)

    @property
    def idle(self) -> list[str]:
        busy = self._asked.values()
        return [name for name in self._node_of_name if name not in busy]

    def ask(self, node: str, *question: Any) -> None:
        pipe = self._node_of_name[node].pipe
        self._asked[pipe] = node
        with suppress(BrokenPipeError):  # a lost node is told by what comes back
            pipe.send(("question", question))

    def first(self) -> tuple[str, Any]:
        """The name of the first node that answers, and its answer."""
        ready: Any = wait(list(self._asked))[0]
        node = self._asked.pop(ready)
        try:
            return node, ready.recv()
        except (EOFError, ConnectionError):
            self._node_of_name.pop(node).end()
            return node, DeviceLost(f"node {node!r} was lost")

    def close(self) -> None:
        """Ends those that are at work, whatever they are doing."""
        for node in self._asked.values():
            self._node_of_name.pop(node).end()
        self._asked = {}
