"""Nodes of a cluster on this machine: there when they are wanted, and then gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from helpers.processes import OWN_SESSION, gone, own_processes_but

from speclib import SpeclibError

ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")

from speclab import laptop_cluster as laptop  # noqa: E402

pytestmark = pytest.mark.slow

PRINTS_ITS_PROCESSES = """
import psutil
from speclab.laptop_cluster import laptop_nodes
with laptop_nodes(["one"]):
    print(*[child.pid for child in psutil.Process().children(recursive=True)])
    print("ready", flush=True)
    input()
"""


def folders_of(processes: list[int]) -> set[Path]:
    """Where these processes keep Ray's files."""
    folders = set()
    for pid in processes:
        folder = psutil.Process(pid).environ().get(laptop.FOLDER)
        if folder:
            folders.add(Path(folder))
    return folders


def test_nodes_are_joined_killed_and_ended_and_nothing_of_them_is_left(capfd):
    known = own_processes_but(set())  # those of other tests
    with laptop.laptop_nodes(["one", "two", "three"]) as nodes:
        processes = [process.pid for process in own_processes_but(known)]
        assert {node["NodeName"] for node in ray.nodes()} == {"one", "two", "three"}
        folders = folders_of(processes)
        assert len(folders) == 1

        with pytest.raises(SpeclibError, match="'one' cannot be killed: .* two, three"):
            nodes.kill("one")
        nodes.kill("two")
        says = "joined a Ray cluster already"
        with pytest.raises(SpeclibError, match=says), laptop.laptop_nodes(["more"]):
            pass
    assert not ray.is_initialized()
    assert len(processes) > 5
    assert gone(processes)
    assert not any(folder.exists() for folder in folders)
    assert capfd.readouterr() == ("", "")


def test_nodes_end_with_the_process_that_asked_for_them():
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PRINTS_ITS_PROCESSES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **OWN_SESSION,
    )
    assert started.stdout is not None
    processes = [int(pid) for pid in started.stdout.readline().split()]
    assert started.stdout.readline() == "ready\n"
    folders = folders_of(processes)
    assert len(folders) == 1
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    assert len(processes) > 2  # the keeper, and what makes a node of Ray
    assert gone(processes)
    assert not any(folder.exists() for folder in folders)


def test_nodes_that_cannot_start_are_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    says = "could not run its nodes on this machine"
    with pytest.raises(SpeclibError, match=says), laptop.laptop_nodes(["one"]):
        pass
