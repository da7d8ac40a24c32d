"""speclib: parallel speculative decoding, run, simulated and drawn.

What reproduces the papers, judges and teaches with it is the package speclab. Importing
this is fast and needs no torch; what is heavy is loaded when first used.
"""

from speclib import public_names
from speclib.errors import (
    MovedName,
    SpeclibError,
    can_start_processes,
    is_installed,
)
from speclib.methods import METHODS
from speclib.version import VERSION

__version__ = VERSION

_MODULE_OF_NAME = {
    "decode": "decoding.decode",
    "open_world": "decoding.decode",
    "Result": "decoding.decode",
    "decode_batch": "decoding.batch",
    "BatchResult": "decoding.decode",
    "load_pair": "data.pairs",
    "pair": "data.pairs",
    "Pair": "data.pairs",
    "Processes": "worlds.processes",
    "ProcessLockstep": "worlds.lockstep_processes",
    "Cluster": "worlds.cluster.cluster_world",
    "External": "decoding.transformers_baselines",
    "EXTERNAL": "decoding.transformers_baselines",
    "Virtual": "worlds.virtual",
    "DeviceFailed": "worlds.world",
    "DeviceLost": "worlds.world",
    "Latency": "data.latency",
    "load_latency": "data.latency",
    "Trace": "trace.events",
    "stats": "trace.metrics",
    "acceptance": "trace.acceptance",
    "acceptance_of_log": "trace.acceptance",
    "simulate": "decoding.simulate",
    "compare": "decoding.simulate",
    "replay": "decoding.replay",
    "check": "checking.check",
    "draw": "checking.coin",
    "timeline": "drawing.timeline.widget",
}
# What `from speclib import *` gives: without Ray no Cluster, and on Windows and in a
# browser, whose Pythons start no workers, none of what is made of them.
__all__ = ["METHODS", "SpeclibError", *_MODULE_OF_NAME]
if not is_installed("ray") or not can_start_processes():
    __all__.remove("Cluster")
if not can_start_processes():
    for name in ("Processes", "ProcessLockstep", "External", "EXTERNAL"):
        __all__.remove(name)

# They were here until the workbench got a package of its own.
_IN_SPECLAB = {
    "Audit",
    "Book",
    "accept_bars",
    "coins",
    "curves",
    "dots",
    "explorer",
    "heat",
    "kv_ribbon",
    "layers",
    "plan",
    "regions",
    "sequences",
    "similarities",
    "steps",
    "teach",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is used for the first time.

    Raises MissingExtra where it needs a library that is not installed, NoProcesses
    where it needs worker processes, and MovedName where it is in the other package.
    """
    if name in _IN_SPECLAB:
        raise MovedName(
            f"speclib.{name} is speclab.{name} now: `from speclab import {name}`"
        )
    value = public_names.load(__name__, name, _MODULE_OF_NAME, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
