"""speclib runs, simulates and draws parallel speculative decoding.

The package speclab builds on it to reproduce the papers, check methods and teach.
Importing speclib is fast and needs no torch: heavy modules load on first use.
"""

from speclib import public_names
from speclib.errors import (
    SpeclibError,
    can_start_processes,
    is_installed,
)
from speclib.methods import METHODS
from speclib.version import VERSION

__version__ = VERSION

_MODULE_OF_NAME = {
    "decode": "speclib.decoding.decode",
    "open_world": "speclib.decoding.open_world",
    "decode_batch": "speclib.decoding.batch",
    "load_pair": "speclib.data.pairs",
    "pair": "speclib.data.pairs",
    "pairs": "speclib.data.pairs",
    "Processes": "speclib.worlds.processes",
    "ProcessBatch": "speclib.worlds.process_batch",
    "Cluster": "speclib.worlds.cluster.cluster_world",
    "Latency": "speclib.data.latency",
    "load_latency": "speclib.data.latency",
    "simulate": "speclib.decoding.simulate",
    "simulate_batch": "speclib.decoding.simulate",
    "compare": "speclib.decoding.compare",
    "replay": "speclib.decoding.replay",
    "check": "speclab.check.check",  # in the workbench: it decodes nothing
    "draw": "speclab.check.coin",
    "timeline": "speclib.drawing.timeline.widget",
}
# The names of `from speclib import *`. Cluster needs Ray. On Windows and in a browser,
# Python cannot start worker processes, so the worlds that need them are left out.
__all__ = ["METHODS", "SpeclibError", *_MODULE_OF_NAME]
if not is_installed("ray") or not can_start_processes():
    __all__.remove("Cluster")
if not can_start_processes():
    for name in ("Processes", "ProcessBatch"):
        __all__.remove(name)


def __getattr__(name: str) -> object:
    """Imports a public name on first use.

    Raises MissingExtra if it needs a library that is not installed, and NoProcesses if
    it needs worker processes that this Python cannot start.
    """
    value = public_names.load(__name__, name, _MODULE_OF_NAME, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
