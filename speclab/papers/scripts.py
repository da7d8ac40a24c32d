"""Numbers of a table that do not come from running its cells one by one.

The table's file says which: its ``script`` names one of ``SCRIPTS``, a ``stat`` may be
one that is read from a single trace, and a column may name ``books`` that it is charged
by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from speclab.experiment import cache
from speclab.experiment.spec import Profile

from .acceptance_places import add_acceptance_places
from .dsi_figures import add_accounting, add_heatmaps
from .easyspec_layers import add_layer_groups, add_layer_similarities
from .paper_schema import Table
from .pearl_figures import add_from_one_trace, add_steps
from .pearl_transport import add_cache_transport
from .table_result import TableResult


class Script(NamedTuple):
    """What adds a table's numbers to its result, and of which kind they are."""

    kind: str
    add_numbers: Callable[[TableResult], None]


SCRIPTS = {
    "steps": Script("virtual", add_steps),
    "heatmaps": Script("virtual", add_heatmaps),
    "layer_groups": Script("virtual", add_layer_groups),
    "layer_similarities": Script("measured", add_layer_similarities),
    "cache_transport": Script("measured", add_cache_transport),
    "acceptance_places": Script("measured", add_acceptance_places),
}


def add_scripted_numbers(
    result: TableResult, kinds: Iterable[str], *, run: bool = True
) -> None:
    """Adds what a table asks for besides its cells; to most tables nothing.

    Virtual numbers are added even where ``kinds`` leaves them out: they take no engine.
    With ``run=False`` a script is not run. Where the cache lacks what it computes, the
    table's other cells are left out.
    """
    table = result.table
    if table.paper.fills(table.item, "virtual"):
        add_accounting(result)
        add_from_one_trace(result)

    script = script_of(table, kinds)
    if script is None:
        return
    if run:
        script.add_numbers(result)
        return
    try:
        with cache.only_what_is_stored():
            script.add_numbers(result)
    except cache.NotStored:
        known = result.values.get(script.kind, {})
        for row in table.row_labels:
            for column in table.column_labels:
                if (row, column) not in known:
                    result.left_out.add((row, column, script.kind))


def script_of(table: Table, kinds: Iterable[str]) -> Script | None:
    """The script that adds numbers to a table; None if it has none for these kinds."""
    script = SCRIPTS.get(str(table.settings.get("script")))
    if script is None or not table.paper.fills(table.item, script.kind):
        return None
    if script.kind == "virtual" or script.kind in kinds:
        return script
    return None


def is_stored(table: Table, profile: Profile, kinds: Iterable[str]) -> bool:
    """Whether the cache has all that a table's script computes."""
    result = TableResult(table, profile)
    add_scripted_numbers(result, kinds, run=False)
    return not result.left_out
