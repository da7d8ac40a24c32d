"""Numbers of earlier runs on this machine, for cells that were not reached this time.

They come from the ledger and are shown as what they are: they are not among a table's
values, no claim is judged on them, and no chart draws them. What other machines
measured stands in columns of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ledger import LedgerLine
from .paper_schema import Table


def earlier_numbers(
    table: Table,
    left_out: Iterable[tuple[str, str, str]],
    own_lines: Iterable[LedgerLine],
) -> dict[tuple[str, str, str], LedgerLine]:
    """The ledger's lines of cells that were left out, by (row, column, kind).

    ``own_lines`` are those of the ledger that no other machine has timed.
    """
    wanted = set(left_out)
    found = {}
    for line in own_lines:
        key = line.row, line.column, line.kind
        if line.item != table.item or line.value is None or key not in wanted:
            continue
        # A cell may have a second number, such as its speed with prefill.
        if line.metric == table.settings_of(line.row, line.column)["metric"]:
            found[key] = line
    return found
