"""The processes of a pool end together, after a failure or an interrupt."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time

import pytest

from speclab.pool import on_every_core
from speclib.errors import SpeclibError

# The interrupt comes when only the first process has started.
INTERRUPTED_AT_ITS_START = """
import signal, time
from speclab.pool import on_every_core
from speclib.worlds.worker import CONTEXT

start_process = CONTEXT.Process.start

def start_and_interrupt(process):
    start_process(process)
    signal.raise_signal(signal.SIGINT)

CONTEXT.Process.start = start_and_interrupt
try:
    list(on_every_core(time.sleep, [600, 600]))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_process_that_dies_ends_the_others():
    with pytest.raises(SpeclibError, match="died.*run again"):
        list(on_every_core(os._exit, [1, 1, 1]))


def test_processes_stop_if_their_results_are_no_longer_wanted():
    """This happens if an interrupt comes between two results."""
    before = multiprocessing.active_children()
    results = on_every_core(time.sleep, [0.01, 600, 600])
    next(results)
    results.close()
    with pytest.raises(StopIteration):
        next(results)
    assert multiprocessing.active_children() == before


def test_an_interrupt_while_processes_start_ends_them_silently():
    script = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_ITS_START],
        capture_output=True,  # waits for every process to close its end
        text=True,
        timeout=60,
    )
    assert (script.stdout, script.stderr) == ("interrupted\n", "")
