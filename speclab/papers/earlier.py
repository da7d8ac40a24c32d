"""Numbers of earlier runs on this machine, for cells that were not reached this time.

They come from the ledger and are shown as what they are: they are not among a table's
values, no claim is judged on them, and no chart draws them. What other machines
measured stands in columns of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ledger import LedgerRow
from .paper_schema import Table


def earlier_numbers(
    table: Table,
    left_out: Iterable[tuple[str, str, str]],
    own_rows: Iterable[LedgerRow],
) -> dict[tuple[str, str, str], LedgerRow]:
    """By (row, column, kind) of cells that were left out, their row in the ledger.

    ``own_rows`` are those of the ledger that no other machine has timed.
    """
    wanted = set(left_out)
    found = {}
    for row in own_rows:
        key = row.row, row.column, row.kind
        if row.item != table.item or row.value is None or key not in wanted:
            continue
        # A cell may have a second number, such as its speed with prefill.
        if row.metric == table.settings_of(row.row, row.column)["metric"]:
            found[key] = row
    return found
