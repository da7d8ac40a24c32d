"""A full disk, and `make reproduce` stopped at any time: whole files, finished cells kept.

Each run is a process of its own in a home with two of PEARL's tables to fill (see test_reproduce).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.processes import OWN_SESSION, living_in_session, process_status
from helpers.reproduce_home import REPRODUCE, command, make_home, reports, run

from speclib.errors import SpeclibError
from speclib.experiment import machine
from speclib.experiment.atomic_files import remove_leftovers
from speclib.experiment.pool import on_every_core

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc, mounts a disk"
)

WRITE = """
import sys
from pathlib import Path
from speclib.errors import SpeclibError
from speclib.experiment.atomic_files import write_atomically
try:
    write_atomically(Path(sys.argv[1]), "new" * 100_000)
except SpeclibError as error:
    sys.exit(str(error))
"""
SAME = ("ledger.csv", "claims.csv", "pearl.md")  # of two runs; the index says when


def limited(size: int) -> dict:
    """Options of a process whose files may have ``size`` bytes: more is refused as on a full
    disk."""
    return {
        "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    }


def refused(path: Path, **options) -> None:
    """A write of 300 kB fails with a message, and changes nothing."""
    path.write_text("old")
    wrote = subprocess.run(
        [sys.executable, "-c", WRITE, path], capture_output=True, text=True, **options
    )
    assert wrote.returncode == 1
    assert (
        wrote.stderr.startswith(f"cannot write {path}: ")
        and "run again" in wrote.stderr
    )
    assert path.read_text() == "old" and list(path.parent.iterdir()) == [path]


def test_a_write_that_is_refused_names_the_file_and_leaves_the_old_one(tmp_path):
    refused(tmp_path / "ledger.csv", **limited(100_000))


def test_a_full_disk_does_the_same(tmp_path):
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=100k", "none", tmp_path],
        capture_output=True,
    ).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        refused(tmp_path / "ledger.csv")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_what_a_killed_writer_left_is_swept_and_what_others_write_is_not(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = tmp_path / f".ledger.csv.{gone.pid}.abc"
    kept = [
        tmp_path / f".ledger.csv.{os.getpid()}.abc",
        tmp_path / ".a.hidden.file",
        tmp_path / "ledger.csv",
    ]
    for path in (left, *kept):
        path.write_text("x")
    remove_leftovers(tmp_path, tmp_path / "missing")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


# -- reproduce -------------------------------------------------------------------------
SAYS_WHEN_IT_IS_STARTED = """
import sys
from pathlib import Path

class Watcher:
    def find_spec(name, path=None, target=None):
        if name == "speclib.cli":
            Path(__file__).with_name("started").touch()

sys.meta_path.insert(0, Watcher)
"""


def start(home: Path) -> tuple[subprocess.Popen, float]:
    """A run whose own code has begun, and when: an interrupt before finds Python starting.

    Python imports ``sitecustomize`` first; this one sees the run's first import.
    """
    (home / "sitecustomize.py").write_text(SAYS_WHEN_IT_IS_STARTED)
    search_path = os.pathsep.join([str(home), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": search_path.rstrip(os.pathsep)}
    process = command(home, *REPRODUCE, environment=environment, **OWN_SESSION)
    started = home / "started"
    while not started.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    return process, time.monotonic()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[dict[str, bytes], float]:
    """Reports of an uninterrupted run, and how long it took."""
    home = make_home(tmp_path_factory.mktemp("whole"))
    process, begun = start(home)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    return reports(home), time.monotonic() - begun


def cells(home: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        p: (p.stat().st_mtime_ns, p.read_bytes())
        for p in (home / ".cache" / "rows").glob("*.jsonl")
    }


def goes_on(home: Path, whole: dict[str, bytes]) -> None:
    """What is there is whole; another run keeps it and ends with the same reports."""
    kept = cells(home)
    run(home, *REPRODUCE)
    assert {p: now for p, now in cells(home).items() if p in kept} == kept
    assert {n: reports(home)[n] for n in SAME} == {n: whole[n] for n in SAME}
    assert not [p for p in home.rglob(".*") if p.is_file()]


@pytest.mark.parametrize(
    "size, finished", [pytest.param(100, False, marks=pytest.mark.slow), (20_000, True)]
)
def test_a_disk_that_fills_up_costs_no_finished_cell(tmp_path, whole, size, finished):
    home = make_home(tmp_path / "home")
    process = command(home, *REPRODUCE, **limited(size))
    out, err = process.communicate(timeout=120)
    assert process.returncode in (1, 2) and "Traceback" not in err, err
    assert f"cannot write {home / 'reports' / 'ledger.csv'}: File too large" in err
    assert bool(cells(home)) == finished
    goes_on(home, whole[0])


def stop(home: Path, sig: signal.Signals, seconds: float) -> tuple[int, str]:
    """Signals a run after so many seconds, all of its processes if a terminal would; its status
    and what it said, once nothing of it lives."""
    process, _ = start(home)
    time.sleep(seconds)
    (os.killpg if sig == signal.SIGINT else os.kill)(process.pid, sig)
    nothing_lives(process)
    return process.wait(), process.communicate()[1]


def nothing_lives(process: subprocess.Popen) -> None:
    """Of a run that ends: within two seconds."""
    begun = time.monotonic()
    while living_in_session(process.pid):
        process.poll()
        assert time.monotonic() - begun < 2, living_in_session(process.pid)
        time.sleep(0.02)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 10))]
)
def test_a_run_stopped_at_any_time_goes_on_to_the_same_reports(
    tmp_path, whole, sig, seed
):
    home = make_home(tmp_path / "home")
    share = random.Random(seed).uniform(0, 1)
    status, said = stop(home, sig, share * whole[1])
    assert status in (0, 130 if sig == signal.SIGINT else -9), said
    assert "Traceback" not in said and len(said.splitlines()) < 4
    goes_on(home, whole[0])


# -- one of the processes that compute cells is killed ---------------------------------
def computing(process: subprocess.Popen) -> list[int]:
    """The processes of a run that the fork server forked."""
    return [
        p
        for p in living_in_session(process.pid)
        if process_status(p).parent not in (os.getpid(), process.pid)
    ]


@pytest.mark.skipif(
    machine.cores() == 1, reason="one core computes in the run's own process"
)
def test_a_run_one_of_whose_processes_is_killed_says_so_and_another_goes_on(
    tmp_path, whole
):
    home = make_home(tmp_path / "home")
    process = command(home, *REPRODUCE, **OWN_SESSION)
    try:
        while not (
            cells(home) and (found := computing(process))
        ):  # a pool ends with its item
            assert process.poll() is None
            time.sleep(0.002)
        os.kill(found[0], signal.SIGKILL)
        said = process.communicate(timeout=10)[1]
        assert process.returncode == 2 and len(said.splitlines()) == 1
        assert "was killed" in said and "Finished cells are kept: run again" in said
        nothing_lives(process)
    finally:
        for left in living_in_session(process.pid):
            os.kill(left, signal.SIGKILL)
    goes_on(home, whole[0])


def test_a_process_that_dies_in_an_item_ends_the_others():
    with pytest.raises(SpeclibError, match="died.*run again"):
        list(on_every_core(os._exit, [1, 1, 1]))


def test_what_nobody_waits_for_any_more_is_stopped():
    """As when an interrupt comes between two results."""
    before, results = (
        multiprocessing.active_children(),
        on_every_core(time.sleep, [0.01, 600, 600]),
    )
    next(results)
    results.close()
    with pytest.raises(StopIteration):
        next(results)
    assert multiprocessing.active_children() == before
