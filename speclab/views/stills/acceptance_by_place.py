"""How often the 1st, 2nd, ... draft of a window is right: a line for each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speclab.traces.acceptance import Acceptance, acceptance
from speclib.arguments import checked

from .curves import Curves

TITLE = "how often a draft passes, where all before it in its window do"


@checked
def acceptance_by_place(runs: Mapping[str, Any]) -> Curves:
    """A line for each name, over the places of a window.

    ``runs``: name -> a run or several, as of ``speclab.acceptance``, or what that gave.
    A place at which nothing was tested has no dot. Raises BadValue as
    ``speclab.acceptance`` does.
    """
    lines = {}
    for name, of_name in runs.items():
        counts = of_name if isinstance(of_name, Acceptance) else acceptance(of_name)
        lines[name] = dict(enumerate(counts.conditional, 1))
    return Curves(lines, TITLE, "place in the window", 0.0)
