"""speclib: parallel speculative decoding, run, simulated and drawn.

What reproduces the papers, judges and teaches with it is the package speclab. Importing
this is fast and needs no torch; what is heavy is loaded when first used.
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
    "check": "speclab.check.check",  # of the workbench: it judges, and decodes nothing
    "draw": "speclab.check.coin",
    "timeline": "speclib.drawing.timeline.widget",
}
# What `from speclib import *` gives: without Ray no Cluster, and on Windows and in a
# browser, whose Pythons start no workers, none of what is made of them.
__all__ = ["METHODS", "SpeclibError", *_MODULE_OF_NAME]
if not is_installed("ray") or not can_start_processes():
    __all__.remove("Cluster")
if not can_start_processes():
    for name in ("Processes", "ProcessBatch"):
        __all__.remove(name)


def __getattr__(name: str) -> object:
    """Imports a public name when it is used for the first time.

    Raises MissingExtra where it needs a library that is not installed, and NoProcesses
    where it needs worker processes.
    """
    value = public_names.load(__name__, name, _MODULE_OF_NAME, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
