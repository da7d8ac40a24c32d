"""`make reproduce` stopped at any time: whole files, finished cells stored.

Each run is a process of its own in a home with two of PEARL's tables to fill (see
helpers.reproduce_home).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.processes import (
    OWN_SESSION,
    living_in_session,
    process_status,
    with_files_of_at_most,
)
from helpers.reproduce_home import REPRODUCE, command, make_home, reports, run

from speclib import machine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, limits files"),
]

A_HANG = 300.0  # seconds in which everything ends, on a busy machine too

# Reports that are the same for two runs; the index says when each was made.
SAME_EVERY_TIME = ("ledger.csv", "claims.csv", "pearl.md")

SAYS_WHEN_IT_IS_STARTED = """
import sys
from pathlib import Path

class Watcher:
    def find_spec(name, path=None, target=None):
        if name == "speclab.cli":
            Path(__file__).with_name("started").touch()

sys.meta_path.insert(0, Watcher)
"""


# A shell says 130 for both statuses of an interrupted run. Python ends by the signal,
# in place of our status, when the interrupt finds it inside an exec of text, as there
# is in imports, or ending already.
STATUS_WHEN_STOPPED = {
    signal.SIGINT: (130, -signal.SIGINT),
    signal.SIGKILL: (-signal.SIGKILL,),
}


# -- runs, and what they leave --------------------------------------------------------
class Run(NamedTuple):
    """A run whose own code has begun, at ``started`` on the monotonic clock."""

    process: subprocess.Popen
    started: float


class WholeRun(NamedTuple):
    """What an uninterrupted run gave: its reports, and the seconds it took."""

    reports: dict[str, bytes]
    seconds: float


class CellFile(NamedTuple):
    """A cell on disk."""

    written_at: int
    content: bytes


def start(home: Path) -> Run:
    """Start a run, and wait until its own code has begun.

    An interrupt before finds Python starting. Python imports ``sitecustomize`` first;
    this one sees the run's first import.
    """
    (home / "sitecustomize.py").write_text(SAYS_WHEN_IT_IS_STARTED)
    search_path = os.pathsep.join([str(home), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": search_path.rstrip(os.pathsep)}
    process = command(home, *REPRODUCE, environment=environment, **OWN_SESSION)
    while not (home / "started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    return Run(process, time.monotonic())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> WholeRun:
    """An uninterrupted run."""
    home = make_home(tmp_path_factory.mktemp("whole"))
    process, started = start(home)
    out, err = process.communicate(timeout=A_HANG)
    assert process.returncode == 0, out + err
    return WholeRun(reports(home), time.monotonic() - started)


def cells(home: Path) -> dict[Path, CellFile]:
    """The finished cells of a home."""
    files = {}
    for path in (home / ".cache" / "rows").glob("*.jsonl"):
        files[path] = CellFile(path.stat().st_mtime_ns, path.read_bytes())
    return files


def has_come_further(earlier: CellFile, now: CellFile) -> bool:
    """Whether a virtual cell's first part was kept, and its rest run."""
    requests, more = requests_in(earlier), requests_in(now)
    return more[: len(requests)] == requests and len(more) > len(requests)


def requests_in(cell: CellFile) -> list[object]:
    """What is stored of a cell's requests, below the header."""
    return [json.loads(line) for line in cell.content.splitlines()[1:]]


def assert_another_run_goes_on(home: Path, whole: WholeRun) -> None:
    """What is there is whole; another run keeps it and ends with the same reports."""
    stored = cells(home)
    run(home, *REPRODUCE)
    now = cells(home)
    for path, cell in stored.items():
        assert now[path] == cell or has_come_further(cell, now[path])
    for name in SAME_EVERY_TIME:
        assert reports(home)[name] == whole.reports[name]
    assert not [path for path in home.rglob(".*") if path.is_file()]


# -- a disk that fills up -------------------------------------------------------------
@pytest.mark.parametrize(
    "size, has_finished_cells",
    [pytest.param(100, False, marks=pytest.mark.thorough), (20_000, True)],
)
def test_a_disk_that_fills_up_costs_no_finished_cell(
    tmp_path, whole, size, has_finished_cells
):
    home = make_home(tmp_path / "home")
    process = command(home, *REPRODUCE, **with_files_of_at_most(size))
    _, err = process.communicate(timeout=A_HANG)
    assert process.returncode in (1, 2)
    assert "Traceback" not in err
    assert f"cannot write {home / 'reports' / 'ledger.csv'}: File too large" in err
    assert bool(cells(home)) == has_finished_cells
    assert_another_run_goes_on(home, whole)


# -- a run that is stopped ------------------------------------------------------------
def stop(process: subprocess.Popen, sig: signal.Signals) -> None:
    """Signal a run as people do.

    A terminal sends an interrupt to all processes of a run; kill ends the first alone.
    """
    if sig == signal.SIGINT:
        os.killpg(process.pid, sig)
    else:
        os.kill(process.pid, sig)


def assert_nothing_lives(process: subprocess.Popen) -> None:
    """All processes of a run that is stopped end, too."""
    until = time.monotonic() + A_HANG
    while living_in_session(process.pid):
        process.poll()
        assert time.monotonic() < until, living_in_session(process.pid)
        time.sleep(0.02)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.thorough) for s in range(1, 10))]
)
def test_a_run_stopped_at_any_time_goes_on_to_the_same_reports(
    tmp_path, whole, sig, seed
):
    home = make_home(tmp_path / "home")
    process, _ = start(home)
    time.sleep(random.Random(seed).uniform(0, whole.seconds))
    stop(process, sig)
    assert_nothing_lives(process)

    status = process.wait()
    _, err = process.communicate()
    assert status in (0, *STATUS_WHEN_STOPPED[sig]), err  # 0: it ended by itself
    assert "Traceback" not in err
    assert len(err.splitlines()) < 4
    assert_another_run_goes_on(home, whole)


# -- one of the processes that compute cells is killed --------------------------------
def computing_processes(process: subprocess.Popen) -> list[int]:
    """The processes of a run that the fork server forked."""
    not_forked_by_it = (os.getpid(), process.pid)
    return [
        pid
        for pid in living_in_session(process.pid)
        if process_status(pid).parent not in not_forked_by_it
    ]


def wait_for_a_computing_process(home: Path, process: subprocess.Popen) -> int:
    """One that computes, once a first cell is finished: a pool ends with its items."""
    while True:
        assert process.poll() is None
        computing = computing_processes(process)
        if computing and cells(home):
            return computing[0]
        time.sleep(0.002)


@pytest.mark.skipif(
    machine.cores() == 1, reason="one core computes in the run's own process"
)
def test_a_run_one_of_whose_processes_is_killed_says_so_and_another_goes_on(
    tmp_path, whole
):
    home = make_home(tmp_path / "home")
    process = command(home, *REPRODUCE, **OWN_SESSION)
    try:
        os.kill(wait_for_a_computing_process(home, process), signal.SIGKILL)
        _, err = process.communicate(timeout=A_HANG)
        assert process.returncode == 2
        assert len(err.splitlines()) == 1
        assert "was killed" in err
        assert "Finished cells are stored: run again" in err
        assert_nothing_lives(process)
    finally:
        for pid in living_in_session(process.pid):
            os.kill(pid, signal.SIGKILL)
    assert_another_run_goes_on(home, whole)
