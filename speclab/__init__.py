"""speclab: the workbench that reproduces, judges and teaches with speclib.

Importing this is fast; what is heavy is loaded when first used.
"""

import speclib
from speclib import public_names

_MODULE_OF_NAME = {
    "similarities": "measure.layer_similarity",
    "explorer": "views.widgets.timeline_explorer",
    "regions": "views.widgets.dsi_regions",
    "dots": "views.stills.dots",
    "steps": "views.tables.steps",
    "sequences": "views.drafts.drafts_explorer",
    "layers": "views.widgets.layer_schedule_widget",
    "heat": "views.stills.heat",
    "curves": "views.stills.curves",
    "acceptance_by_place": "views.stills.acceptance_by_place",
    "moving_curves": "views.widgets.moving_curves",
    "trade_off": "views.widgets.trade_offs",
    "trail": "views.widgets.trail",
    "accept_bars": "views.live.accept_bars",
    "coins": "views.live.coins",
    "kv_ribbon": "views.live.kv_ribbon",
    "rounds": "views.live.rounds",
    "load_paper": "papers.load_papers",
    "Book": "reproduce.book",
    "Audit": "reproduce.audit_book",
    "plan": "planning.plan",
    "teach": "teach",
}
__all__ = [*_MODULE_OF_NAME]  # what `from speclab import *` gives


def __getattr__(name: str) -> object:
    """Imports a public name when it is used for the first time.

    Raises MissingExtra where it needs a library that is not installed.
    """
    if name in speclib.__all__:
        raise AttributeError(f"speclab.{name} is speclib.{name}: `import speclib`")
    value = public_names.load(__name__, name, _MODULE_OF_NAME, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
