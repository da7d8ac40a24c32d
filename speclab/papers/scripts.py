"""Adds the numbers of a table that do not come from running its cells one by one.

The table's file asks for them: its ``script`` names one of ``SCRIPTS`` or ``READERS``,
a ``stat`` may be read from a single trace, and a column may name the ``books`` by which
its time is charged. Quick numbers are computed here; the others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from speclab.runs.values import Value, ValuesStep

from . import acceptance_places, easyspec_layers, pearl_transport
from .acceptance_places import add_acceptance_places
from .dsi_figures import add_accounting, add_heatmaps
from .easyspec_layers import add_layer_groups, add_layer_similarities
from .paper_schema import Table
from .pearl_figures import add_from_one_trace, add_steps
from .pearl_transport import add_cache_transport
from .table_result import TableResult

SCRIPTS: dict[str, Callable[[TableResult], None]] = {
    "steps": add_steps,
    "heatmaps": add_heatmaps,
    "layer_groups": add_layer_groups,
}
# These read values that were measured separately from the runs.
READERS: dict[str, Callable[[TableResult, Sequence[Value]], None]] = {
    "layer_similarities": add_layer_similarities,
    "cache_transport": add_cache_transport,
    "acceptance_places": add_acceptance_places,
}


def add_scripted_numbers(
    result: TableResult, kinds: Iterable[str], values: Sequence[Value]
) -> None:
    """Adds the numbers that a table's file asks for besides its cells, if any.

    Virtual numbers are added even if ``kinds`` leaves them out: they need no engine.
    """
    table = result.table
    script = str(table.settings.get("script"))
    if table.paper.fills(table.item, "virtual"):
        add_accounting(result)
        add_from_one_trace(result)
        if script in SCRIPTS:
            SCRIPTS[script](result)
    is_measured = "measured" in kinds and table.paper.fills(table.item, "measured")
    if is_measured and script in READERS:
        READERS[script](result, values)


def values_to_measure(table: Table) -> list[ValuesStep]:
    """The values that a table's script reads."""
    script = str(table.settings.get("script"))
    if script not in READERS or not table.paper.fills(table.item, "measured"):
        return []
    asked: dict[ValuesStep, None] = {}
    for row in table.row_labels:
        settings = table.settings_of(row, "", "measured")
        if script == "cache_transport":
            lengths = pearl_transport.tokens_of(table)
            asked[pearl_transport.asked_of(settings, lengths)] = None
        if script == "acceptance_places":
            asked[acceptance_places.asked_of(settings)] = None
        for column in table.column_labels if script == "layer_similarities" else ():
            settings = table.settings_of(row, column, "measured")
            if settings.keys() >= easyspec_layers.NEEDED_SETTINGS:
                asked[easyspec_layers.asked_of(settings)] = None
    return list(asked)
