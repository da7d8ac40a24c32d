"""The load from other processes: arithmetic of readings, and which processes count."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from speclab.measure import other_load
from speclab.measure.other_load import Reading, others_between
from speclib import machine

CORES = machine.cores()
BURNT = 1.0  # seconds of CPU time
BURN = f"import time\nwhile time.process_time() < {BURNT}: pass"


def reading(wall: float, everybody: float, own: float) -> Reading:
    return Reading(wall=wall, everybody=everybody, own=own)


def test_the_load_of_others_is_cpu_time_that_is_not_ours_over_time_and_cores():
    start = reading(100.0, 50.0, 10.0)
    end = reading(110.0, 50.0 + 7.0 + 0.5 * 10 * CORES, 17.0)
    assert others_between(start, end) == 0.5


@pytest.mark.parametrize(
    "everybody, own, share",
    [(0.0, 3.0, 0.0), (10_000.0, 0.0, 1.0)],
)
def test_a_share_stays_between_0_and_1(everybody, own, share):
    assert others_between(reading(0, 0, 0), reading(10, everybody, own)) == share


def test_cpu_time_of_our_child_processes_counts_as_ours():
    start = other_load.read_clocks()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    end = other_load.read_clocks()
    assert end.own - start.own >= BURNT - 0.02
    assert end.everybody - start.everybody >= BURNT - 0.1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process without parents")
def test_cpu_time_of_an_unrelated_process_counts_as_others(tmp_path):
    done = tmp_path / "done"
    stranger = f"{BURN}\nopen({str(done)!r}, 'w').close()"
    start = other_load.read_clocks()
    # The shell ends at once, so its child is not our descendant.
    subprocess.run(["sh", "-c", f'{sys.executable} -c "$0" &', stranger], check=True)
    until = time.monotonic() + 120
    while not done.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    end = other_load.read_clocks()
    work_of_others = (end.everybody - start.everybody) - (end.own - start.own)
    assert work_of_others >= BURNT - 0.1
