"""The pool of processes: an interrupt at the worst moment ends all of them in silence."""

from __future__ import annotations

import subprocess
import sys

# The first process of the pool has started when the interrupt comes; the others have not.
INTERRUPTED_AT_ITS_START = """
import signal, time
from speclib.experiment.pool import on_every_core
from speclib.worlds.worker_process import CONTEXT

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


def test_an_interrupt_while_its_processes_start_ends_them_without_a_word():
    script = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_ITS_START],
        capture_output=True,  # until the last process has closed its end
        text=True,
        timeout=60,
    )
    assert (script.stdout, script.stderr) == ("interrupted\n", "")
