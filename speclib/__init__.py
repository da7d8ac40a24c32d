"""speclib: learn, check and reproduce parallel speculative decoding.

Importing this is fast and needs no torch; what is heavy is loaded when first used.
"""

from importlib import import_module

from speclib.errors import SpeclibError, is_installed, missing_extra, unknown_name
from speclib.methods import METHODS

_LAZY = {
    "decode": "decoding.decode",
    "open_world": "decoding.decode",
    "Result": "decoding.decode",
    "load_pair": "data.pairs",
    "pair": "data.pairs",
    "Pair": "data.pairs",
    "Processes": "worlds.processes",
    "Cluster": "worlds.cluster.world",
    "External": "decoding.transformers_baselines",
    "EXTERNAL": "decoding.transformers_baselines",
    "Virtual": "worlds.virtual",
    "DeviceFailed": "worlds.world",
    "DeviceLost": "worlds.world",
    "similarities": "experiment.cells.similarity",
    "Latency": "data.latency",
    "load_latency": "data.latency",
    "Trace": "trace.events",
    "stats": "trace.metrics",
    "simulate": "decoding.simulate",
    "compare": "decoding.simulate",
    "replay": "decoding.replay",
    "timeline": "views.timeline.widget",
    "explorer": "views.widgets.explorer",
    "regions": "views.widgets.dsi_regions",
    "dots": "views.stills.dots",
    "steps": "views.tables.steps",
    "sequences": "views.drafts.explorer",
    "layers": "views.widgets.layer_schedule",
    "heat": "views.stills.heat",
    "curves": "views.stills.curves",
    "accept_bars": "views.live.accept_bars",
    "coins": "views.live.coins",
    "kv_ribbon": "views.live.kv_ribbon",
    "Book": "reproduce.book",
    "Audit": "reproduce.audit_book",
    "plan": "planning.plan",
}
# What `from speclib import *` gives. Without Ray there is no Cluster, and all others.
__all__ = ["METHODS", "SpeclibError", *_LAZY]
if not is_installed("ray"):
    __all__.remove("Cluster")


def __getattr__(name: str) -> object:
    """Imports a public name when it is used for the first time.

    Raises MissingExtra where it needs a library that is not installed.
    """
    if name not in _LAZY:
        message = f"module 'speclib' has no attribute {name!r}"
        raise AttributeError(str(unknown_name(message, name, __all__)))
    try:
        module = import_module(f".{_LAZY[name]}", __name__)
    except ModuleNotFoundError as error:
        missing = missing_extra(f"speclib.{name}", error)
        if missing is None:
            raise
        raise missing from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
