"""speclab: the workbench for reproducing, judging and teaching with speclib.

Importing it is fast, because heavy modules load when they are first used.
"""

import speclib
from speclib import public_names

_MODULE_OF_NAME = {
    "External": "speclab.peers.external",
    "EXTERNAL": "speclab.peers.known_peers",
    "acceptance": "speclab.traces.acceptance",
    "acceptance_of_log": "speclab.traces.acceptance",
    "reconcile": "speclab.traces.reconcile",
    "why": "speclab.papers.why",
    "similarities": "speclab.measure.layer_similarity",
    "explorer": "speclab.views.widgets.timeline_explorer",
    "regions": "speclab.views.widgets.dsi_regions",
    "sequences": "speclab.views.drafts.drafts_explorer",
    "layers": "speclab.views.widgets.layer_schedule_widget",
    "forward_passes": "speclab.views.stills.forward_passes",
    "curves": "speclab.views.stills.curves",
    "acceptance_by_place": "speclab.views.stills.curves",
    "moving_curves": "speclab.views.stills.curves",
    "accept_bars": "speclab.views.live.accept_bars",
    "coins": "speclab.views.live.coins",
    "kv_ribbon": "speclab.views.live.kv_ribbon",
    "rounds": "speclab.views.live.rounds",
    "load_paper": "speclab.papers.load_papers",
    "Book": "speclab.reproduce.book",
    "plan": "speclab.planning.plan",
    "teach": "speclab.teach",
}
__all__ = [*_MODULE_OF_NAME]  # what `from speclab import *` imports


def __getattr__(name: str) -> object:
    """Imports a public name on first use.

    Raises MissingExtra if the name needs a library that is not installed.
    """
    if name in speclib.__all__:
        raise AttributeError(f"speclab.{name} is speclib.{name}: `import speclib`")
    value = public_names.load(__name__, name, _MODULE_OF_NAME, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
